import { homedir } from 'node:os'
import { join } from 'node:path'

/** What is downloaded or built once for many checkouts. */
export const cacheFolder = process.env.MILLRACE_CACHE ?? join(homedir(), '.cache', 'millrace')
