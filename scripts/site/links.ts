/** Links between documents of the repository, as links between pages of the site. */
import { existsSync } from 'node:fs'
import { posix } from 'node:path'

/** A page: the file that it comes from, relative to the repository, and its text. */
export interface Page {
  readonly source: string
  readonly text: string
}

const link = /(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g

/** Each part of a text outside of blocks of code. */
function outsideCode(text: string, change: (part: string) => string): string {
  return text
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part, i) => (i % 2 === 0 ? change(part) : part))
    .join('')
}

/** As VitePress makes them of headings. */
export function anchorsOf(text: string): Set<string> {
  const headings = text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^#{1,6} (.+)$/gm)
  const seen = new Map<string, number>()
  const anchors = new Set<string>()
  for (const [, heading = ''] of headings) {
    const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = plain
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(/\s/g, '-')
    const count = seen.get(anchor) ?? 0
    seen.set(anchor, count + 1)
    anchors.add(count === 0 ? anchor : `${anchor}-${count}`)
  }
  return anchors
}

/**
 * The text of a page with its links led to other pages. What lies in the repository and is no page keeps its text alone. Links
 * to nowhere are added to `dead`.
 */
export function relinked(path: string, pages: ReadonlyMap<string, Page>, root: string, dead: string[]): string {
  const { source, text } = pages.get(path) as Page
  const bySource = new Map([...pages].map(([page, { source: from }]) => [from, page]))
  return outsideCode(text, (part) =>
    part.replaceAll(link, (whole, image: string, label: string, target: string) => {
      if (/^[a-z]+:/.test(target)) return whole
      const [file = '', anchor] = target.split('#')
      const wanted = file === '' ? source : posix.join(posix.dirname(source), file)
      const page = bySource.get(wanted)
      if (page === undefined) {
        if (image !== '') return existsSync(posix.join(root, wanted)) ? whole : report(dead, path, target, label)
        return existsSync(posix.join(root, wanted)) ? label : report(dead, path, target, label)
      }
      if (anchor !== undefined && !anchorsOf((pages.get(page) as Page).text).has(anchor))
        return report(dead, path, target, label)
      const to = page === path ? '' : posix.relative(posix.dirname(path), page)
      return `${image}[${label}](${to === '' || to.startsWith('.') ? to : `./${to}`}${anchor === undefined ? '' : `#${anchor}`})`
    }),
  )
}

function report(dead: string[], page: string, target: string, label: string): string {
  dead.push(`${page}: ${target}`)
  return label
}
