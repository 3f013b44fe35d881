import { describe } from 'node:test'
import { lagRules } from '../support/lag-rules.ts'

describe('lag on the embedded broker', () => lagRules(() => ({})))
