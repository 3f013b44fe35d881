import type { BrokerPort } from '../../src/broker/port.ts'

/** Steps of a redrive: before a call, and after it has taken effect. */
export const redriveSteps = ['initProducer', 'produce', 'produced', 'endTransaction', 'ended'] as const

/** A broker that a process asks no more from this step on. */
export function dyingAt(broker: BrokerPort, step: (typeof redriveSteps)[number]): BrokerPort {
  let isDead = false
  const die = (): never => {
    isDead = true
    throw new Error('the process died')
  }
  return new Proxy(broker, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown
      if (typeof value !== 'function') return value
      return async (...given: unknown[]) => {
        if (isDead || name === step) die()
        const result: unknown = await value.apply(target, given)
        if ((name === 'produce' && step === 'produced') || (name === 'endTransaction' && step === 'ended')) die()
        return result
      }
    },
  })
}
