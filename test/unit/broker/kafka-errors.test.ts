/** What is told of a refusal says what to do about it, with the key of the configuration that it is about. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refused } from '../../../src/broker/kafka/errors.ts'
import { configTable } from '../../../src/config/table.ts'

test('a transaction timeout that the broker does not allow is told with the key that lowers it', () => {
  const { code, message } = refused(50, 'the transactional id app')
  assert.equal(code, 'INVALID_TRANSACTION_TIMEOUT')
  const [, key = ''] = /Lower `([^`]+)`/.exec(message) ?? []
  assert.ok(key in configTable, message)
})
