/** Which version of the package runs. */
import { readFileSync } from 'node:fs'

/** Two folders up in the sources, three in the built package; a bundle has lost it. */
const places = ['../../package.json', '../../../package.json']

/** The version in the package's own manifest, `unknown` where a bundler has put the code elsewhere. */
export function packageVersion(): string {
  for (const place of places) {
    const manifest = manifestAt(new URL(place, import.meta.url))
    if (manifest?.name === 'millrace') return manifest.version
  }
  return 'unknown'
}

function manifestAt(url: URL): { readonly name: string; readonly version: string } | undefined {
  try {
    return JSON.parse(readFileSync(url, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}
