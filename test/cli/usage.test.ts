import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, describe, test } from 'node:test'
import { millrace, startMillrace } from '../support/millrace.ts'

const totals = join(import.meta.dirname, 'apps', 'totals.ts')
const folder = mkdtempSync(join(tmpdir(), 'millrace-usage-'))
const schema = join(folder, 'a.avsc')
writeFileSync(schema, '{"type":"record","name":"A","fields":[]}')
after(() => rmSync(folder, { recursive: true }))

describe('the command line', () => {
  test('explains itself', async () => {
    const { code, stdout } = await millrace(['--help'])
    assert.equal(code, 0)
    for (const verb of ['run', 'topology', 'demo', 'ha', 'broker', 'license'])
      assert.match(stdout, new RegExp(`^ {2}${verb} `, 'm'))
    assert.match(stdout, /Exit codes: 0 clean, 1 crash, 2 wrong usage/)
  })

  test('tells its version', async () => {
    const { code, stdout } = await millrace(['--version'])
    assert.equal(code, 0)
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/)
  })

  test('ends as ever where nobody reads its output to the end', async () => {
    const { child, result } = startMillrace(['--help'])
    child.stdout?.destroy()
    const { code, stderr } = await result
    assert.equal(stderr, '')
    assert.equal(code, 0)
  })

  test('says that its output could not be written, with exit code 1', { skip: !existsSync('/dev/full') }, async () => {
    const { code, stderr } = await millrace(['--help'], { stdoutTo: '/dev/full' })
    assert.equal(stderr, 'millrace: Standard output took no more (ENOSPC): what is missing there was not written.\n')
    assert.equal(code, 1)
  })

  const wrong: ReadonlyArray<readonly [args: string[], says: RegExp]> = [
    [['rum'], /unknown command 'rum'\n\(Did you mean run\?\)/],
    [['run'], /missing required argument 'app'/],
    [['run', 'app.ts', '--until-idel'], /unknown option '--until-idel'/],
    [['run', 'app.ts', '--set', 'lanes'], /It is key=value/],
    [['run', 'app.ts', '--feed-rate', 'fast'], /a number of records a second above 0/],
    [['run', 'app.ts', '--feed', 'flights'], /--feed takes topic=file/],
    [['run', 'app.ts', '--feed', 'flights=nowhere.ndjson'], /The file 'nowhere\.ndjson' .* does not exist/],
    [['completion', 'csh'], /'csh' is invalid.*Allowed choices are bash, zsh, fish/],
    [['types', schema, '--out', import.meta.dirname], /--out: .* cannot be written \(EISDIR\); name a file/],
    [
      ['types', 'orders', '--set', 'schema-registry.url=https://r', '--set', 'schema-registry.tls.ca-file=nowhere.pem'],
      /a file that schema-registry\.tls\.\* names cannot be read: .*nowhere\.pem/,
    ],
    [['topology', '--diff', 'old.json'], /--diff is about the file of an application; name one/],
    [['topology', '--format', 'json'], /--format is about the file/],
    [['topology', totals, '-o', 'json'], /--output is about a running application; leave the file out/],
    [['topology', totals, '--url', 'localhost'], /--url is about a running application/],
    [['stores', '--limit', '3'], /--limit is about the rows of one store; name it/],
    [['license', 'inspect', 'hello'], /not a license key/],
    [['license', 'inspect', '@nowhere.jwt'], /'nowhere\.jwt' of the key cannot be read \(ENOENT\)/],
  ]
  for (const [args, says] of wrong) {
    test(`refuses 'millrace ${args.map((arg) => basename(arg)).join(' ')}' in one sentence, with exit code 2`, async () => {
      const { code, stdout, stderr } = await millrace(args)
      assert.match(stderr, says)
      assert.match(stderr, /^millrace: /)
      assert.doesNotMatch(stderr, /^\s+at /m)
      assert.equal(stdout, '')
      assert.equal(code, 2)
    })
  }
})
