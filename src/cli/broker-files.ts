/** `millrace broker check` and `repair`: says what is damaged in a folder and what that costs, and cuts it on request. */
import { accessSync, constants, existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { EngineError } from '../base/errors.ts'
import { type Inspection, inspectFolder } from '../broker/embedded/files/inspection.ts'
import { lockFolder, lockReadOnly } from '../broker/embedded/folder-lock.ts'
import { exitCodes } from './exit-codes.ts'

interface Out {
  write(text: string): unknown
}

export function checkFolder(folder: string, out: Out): number {
  return locked(folder, 'check', (path) => {
    const inspection = inspectFolder(path)
    out.write(reportOf(inspection))
    if (inspection.findings.length === 0) return exitCodes.clean
    out.write(`Nothing was changed. Restore the folder from a copy if you can. ${wayOut(inspection, path)}\n`)
    return exitCodes.crash
  })
}

export function repairFolder(folder: string, cut: boolean, out: Out): number {
  return locked(folder, 'repair', (path) => {
    const inspection = inspectFolder(path)
    out.write(reportOf(inspection))
    const { findings, repair } = inspection
    if (findings.length === 0) return exitCodes.clean
    if (repair === undefined) throw new EngineError('BROKER_FILES_DAMAGED', wayOut(inspection, path))
    if (!cut) throw new EngineError('USAGE', 'Nothing was changed: add --cut to lose what is shown, and keep the rest.')
    repair()
    const left = inspectFolder(path).findings
    if (left.length > 0) return exitCodes.crash
    out.write(`This was cut off: the broker starts with the rest.\n`)
    return exitCodes.clean
  })
}

function wayOut({ repair }: Inspection, folder: string): string {
  return repair === undefined
    ? `Without it the rest is of no use: restore ${folder} from a copy, or delete it to begin anew.`
    : `\`millrace broker repair ${folder} --cut\` loses what is shown and keeps the rest.`
}

function reportOf({ topics, segments, findings, consequences }: Inspection): string {
  if (findings.length === 0) return `No damage: ${topics} topics in ${segments} segments.\n`
  const lines = findings.flatMap(({ path, at, why, losses }) => [
    `${path}, byte ${at}: ${why}.`,
    ...losses.map((loss) => `  Lost: ${loss}.`),
  ])
  return `${[...lines, ...consequences.map((sentence) => `With that, ${sentence}.`)].join('\n')}\n`
}

/** Nobody else may have the folder meanwhile. A backup may lie where nothing can be written, not even who has it. */
function locked(folder: string, verb: 'check' | 'repair', work: (path: string) => number): number {
  const path = resolve(folder)
  if (!existsSync(join(path, 'topics')) && !existsSync(join(path, 'journal'))) {
    throw new EngineError('USAGE', `${path} is no folder of an embedded broker: it has neither a journal nor topics.`)
  }
  const isReadOnly = isOnReadOnly(path)
  if (isReadOnly && verb === 'repair') {
    const what = `${path} is on a read-only file system: nothing can be cut off there, and nothing was changed`
    throw new EngineError('USAGE', `${what}. Copy the folder to another place, and repair the copy.`)
  }
  const unlock = isReadOnly ? lockReadOnly(path) : lockFolder(path)
  try {
    return work(path)
  } finally {
    unlock()
  }
}

function isOnReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS'
  }
}
