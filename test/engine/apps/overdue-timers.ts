/** Timers that are often overdue when they are asked for, beside a function of which one call in some takes its time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { application } from '../../support/overdue-timers.ts'

export default application({ beside: (n) => (n % 97 === 0 ? sleep(3) : Promise.resolve()) })
