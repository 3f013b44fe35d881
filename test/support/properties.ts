/**
 * fast-check, which draws the same cases in every run: a run of the tests is green or red for what was changed, not for
 * what was drawn. `PROPERTY_SEED=random node test/run.ts unit` looks for what nobody has seen yet.
 */
import fc from 'fast-check'

const { PROPERTY_SEED } = process.env

if (PROPERTY_SEED !== 'random') fc.configureGlobal({ seed: Number(PROPERTY_SEED ?? 20_261_123) })

export default fc
