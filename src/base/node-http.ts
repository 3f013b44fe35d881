/**
 * Node's HTTP. An `import` of `node:http` looks at everything that the module offers, and thereby loads a client for WebSockets and
 * `fetch`, which takes as long as all of this package: so it is had without one.
 */
const { createServer, METHODS, request } = process.getBuiltinModule('node:http')

export { createServer, METHODS, request }
