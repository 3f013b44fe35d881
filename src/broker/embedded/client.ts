import type { MessagePort } from 'node:worker_threads'
import { PortLink } from '../calls/port-link.ts'
import { closed } from './direct-client.ts'
import { EmbeddedClient } from './embedded-client.ts'

/** A client over a port that `EmbeddedBroker.connect()` gave, in whichever thread the port was sent to. */
export function clientOverPort(port: MessagePort, options: { readonly clientId?: string } = {}): EmbeddedClient {
  return new EmbeddedClient(new PortLink(port, closed), options.clientId ?? 'millrace')
}
