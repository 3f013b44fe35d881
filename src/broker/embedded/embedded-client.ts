import { LinkedBroker } from '../calls/linked-broker.ts'

/** The broker port over the embedded broker, wherever that runs. */
export class EmbeddedClient extends LinkedBroker {
  readonly kind = 'embedded'
}
