/** What an application that wants OpenTelemetry loads with `--import`; the environment says where to. */
import { NodeSDK } from '@opentelemetry/sdk-node'

new NodeSDK({ instrumentations: [], resourceDetectors: [] }).start()
