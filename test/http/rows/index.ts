import type { Row } from '../support/subject.ts'
import { section1 } from './section-1-server.ts'
import { section21, section22, section23, section24 } from './section-2-about.ts'
import { section213 } from './section-2-debug.ts'
import { section211 } from './section-2-ha.ts'
import { section25, section27, section28, section29, section210 } from './section-2-progress.ts'
import { section26 } from './section-2-topology.ts'
import { section3 } from './section-3-lifecycle.ts'

/** Every row, by the section of the specification it belongs to. */
export const sections: Readonly<Record<string, readonly Row[]>> = {
  '1, 4–7 server, methods, paths, errors': section1,
  '2.1 health': section21,
  '2.2 info': section22,
  '2.3 license': section23,
  '2.4 configuration': section24,
  '2.5 state': section25,
  '2.6 topology': section26,
  '2.7 watermarks': section27,
  '2.8 offsets': section28,
  '2.9 consumer': section29,
  '2.10 pause and unpause': section210,
  '2.11–2.12 high availability': section211,
  '2.13 debug, metrics': section213,
  '3 lifecycle': section3,
}
