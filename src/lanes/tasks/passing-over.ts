/**
 * What stands around each operator where the policies let records that fail go no further: a failure ends the record's way at
 * the operator that failed, and nowhere else. Operators above it, and those beside it, do not hear of it.
 */
import type { CompiledNode } from '../../topology/compiled.ts'
import type { Maybe, Operator, Rec } from '../../operators/contract.ts'
import { processingFailed } from '../../operators/node-operator.ts'

/** `isPassedOver` applies the policy; false: the lane is to fail. */
export function passingOver(
  operator: Operator,
  { name }: CompiledNode,
  isPassedOver: (rec: Rec, error: unknown) => boolean,
): Operator {
  const failed = (rec: Rec, error: unknown): void => {
    const failure = processingFailed(error, name, rec)
    if (!isPassedOver(rec, failure)) throw failure
  }
  return {
    process(rec): Maybe {
      let pending: Maybe
      try {
        pending = operator.process(rec)
      } catch (error) {
        failed(rec, error)
        return
      }
      return pending?.then(undefined, (error) => failed(rec, error))
    },
  }
}
