/** File systems of a test's own: to be filled, or to take no writes. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

export const noMount = 'to mount a file system takes the rights of root'

/** Undefined where this process may not mount anything. `options`: those of a file system in memory, as `size=3m`. */
export type Mount = (name: string, options: string) => string | undefined

/** For the tests of a file or of a suite: unmounts behind them what they have mounted. */
export function smallDisks(): Mount {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-disks-'))
  const mounted: string[] = []
  after(() => {
    for (const dir of mounted) execFileSync('umount', [dir])
    rmSync(folder, { recursive: true, force: true })
  })
  return (name, options) => {
    const dir = join(folder, name)
    mkdirSync(dir)
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', dir], { stdio: 'pipe' })
    } catch {
      return undefined
    }
    mounted.push(dir)
    return dir
  }
}

/** Changes one while it is in use. */
export function remount(dir: string, options: string): void {
  execFileSync('mount', ['-o', `remount,${options}`, dir])
}
