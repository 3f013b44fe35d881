/** The program that lies in the file named by the address, or by the environment. */
import { readFileSync } from 'node:fs'
import { defineApp } from 'millrace'
import { buildProgram } from '../build.ts'
import type { Program } from '../program.ts'

const file = new URL(import.meta.url).searchParams.get('program') ?? process.env.REFERENCE_PROGRAM ?? ''
const program = JSON.parse(readFileSync(file, 'utf8')) as Program

export default defineApp({
  applicationId: process.env.REFERENCE_APPLICATION ?? 'reference',
  build: (topology) => buildProgram(program, topology),
})
