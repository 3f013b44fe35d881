/** Two processes of one group over a real Kafka: whoever is asked for a key of the other says where it is, and the command goes there. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { refreshConsole } from '../../scripts/console.ts'
import { freePorts } from '../../scripts/free-ports.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { startBrowser } from '../console/support/browser.ts'
import { Visit } from '../console/support/visit.ts'
import { produce } from '../engine/support/engine.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually, millrace } from '../support/millrace.ts'
import { EngineProcess } from './verifier/harness.ts'

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false
const keys = Array.from({ length: 40 }, (_, n) => `key-${n}`)
const patienceMs = 240_000
const token = 'open-sesame'

interface Told {
  readonly status: number
  readonly body: { readonly rows?: readonly unknown[]; readonly error?: string; readonly address?: string }
}

describe('a key that another process has', { skip }, () => {
  const bootstrap = 'skip' in kafka ? 'nowhere:1' : kafka.bootstrap
  const folder = mkdtempSync(join(tmpdir(), 'millrace-owner-'))
  const port = connectKafka({ bootstrapServers: [bootstrap], clientId: 'feed' })
  const processes: EngineProcess[] = []

  before(async () => {
    await port.createTopics([{ topic: 'shared-events', partitions: 6 }])
    await produce(
      port,
      'shared-events',
      keys.map((key) => ({ key, value: {}, timestamp: 1_700_000_000_000 })),
      6,
    )
  })
  after(async () => {
    for (const each of processes) each.dispose()
    await port.close()
    rmSync(folder, { recursive: true, force: true })
    if (!('skip' in kafka)) await kafka.stop()
  })

  function member(name: string, at: number, pods: readonly number[]): EngineProcess {
    const process = new EngineProcess({
      prefix: `owner-${name}`,
      bootstrap,
      stateFolder: join(folder, name),
      application: join('..', '..', 'engine', 'apps', 'shared-counts.ts'),
      port: at,
      announces: true,
      settings: {
        'runtime.http.console.pods': pods.map((pod) => `http://127.0.0.1:${pod}`).join(','),
        'runtime.endpoints.stores.enabled': 'true',
        'runtime.http.auth.token': token,
        'engine.instance-id': name,
        'engine.state.store': 'memory',
        'engine.lanes.count': '1',
        'topology.sub-topology-split': 'repartition-topics',
        'commit-barrier.interval-ms': '100',
      },
    })
    processes.push(process)
    return process
  }

  /** Keys of the second process, once the first one knows of them. */
  async function keysOfTheOther(one: EngineProcess, two: EngineProcess): Promise<string[]> {
    let theirs: string[] = []
    const look = async (): Promise<boolean> => {
      const said = await Promise.all(keys.map(async (key) => ({ key, ...(await rows(one, key)) })))
      for (const { status, body, key } of said) {
        if (status === 421) assert.equal(body.address, two.url, key)
        else if (status === 503) assert.match(body.error ?? '', /retry|restored|not complete|state is/, key)
        else assert.equal(status, 200, JSON.stringify(body))
      }
      theirs = said.filter(({ status }) => status === 421).map(({ key }) => key)
      return theirs.length > 0 && said.every(({ status }) => status === 421 || status === 200)
    }
    await eventually('each of them has some of the keys', look, patienceMs)
    for (const key of theirs) {
      const has = async (): Promise<boolean> => (await rows(two, key)).body.rows?.length === 1
      await eventually(`the other one has ${key}`, has, patienceMs)
    }
    return theirs
  }

  async function rows(process: EngineProcess, key: string): Promise<Told> {
    const headers = { authorization: `Bearer ${token}` }
    const response = await fetch(`${process.url}/stores/counts?key=${key}`, { headers })
    return { status: response.status, body: (await response.json()) as Told['body'] }
  }

  test('is told with its address; the command and the console follow', async (t) => {
    const ports = await freePorts(2)
    const [one, two] = ['one', 'two'].map((name, n) => member(name, ports[n] as number, ports)) as [
      EngineProcess,
      EngineProcess,
    ]
    for (const each of [one, two]) await each.start()
    for (const each of [one, two]) await each.untilReady(patienceMs)
    const [theirs] = (await keysOfTheOther(one, two)) as [string]

    const command = async (key: string): Promise<readonly { key: string; value: number }[]> => {
      let answer = { code: 1 as number | null, stdout: '', stderr: '' }
      const args = ['stores', 'counts', '--key', key, '--url', one.url, '-o', 'json']
      // In a rebalance that is not over yet it is told to ask again.
      const asks = async (): Promise<boolean> => {
        answer = await millrace(args, { env: { RUNTIME_HTTP_AUTH_TOKEN: token } })
        if (answer.code !== 0) assert.match(answer.stderr, /retry|restored|not complete/)
        return answer.code === 0
      }
      await eventually('the command has an answer', asks, patienceMs)
      return JSON.parse(answer.stdout).rows
    }
    assert.deepEqual(
      (await command(theirs)).map(({ key, value }) => [key, value]),
      [[theirs, 1]],
    )
    // A key that nobody ever saw has an owner all the same, who says that there is none.
    assert.deepEqual(await command('nobody'), [])

    await refreshConsole()
    const browser = await startBrowser()
    if (typeof browser === 'string') return t.diagnostic(`without the console: ${browser}`)
    t.after(() => browser.close())
    const visit = await Visit.to(browser, one.url, { mayRefuse: [401, 421, 503], mayAsk: [two.url] })
    t.after(() => visit.close())
    const { page } = visit
    await page.goto(`${one.url}/console/#/stores?store=counts&key=${theirs}`)
    await page.locator('input[type=password]').fill(token)
    await page.keyboard.press('Enter')
    // The other one has not been given its token: there is a link to it.
    const link = page.getByRole('link', { name: 'Look there' })
    await link.waitFor()
    assert.equal(await link.getAttribute('href'), `${two.url}/console/#/stores?store=counts&key=${theirs}`)
    await visit.open('overview')
    await page.getByLabel(`Token of ${two.url}`).fill(token)
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: `Show ${two.url}`, disabled: false }).waitFor()
    await visit.open(`stores?store=counts&key=${theirs}`)
    await page.getByText(`${two.url} has this key.`).waitFor()
    await page.getByRole('cell', { name: theirs, exact: true }).waitFor()
    visit.blameless()
  })
})
