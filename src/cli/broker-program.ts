/** The verbs of `millrace broker`: the files of an embedded broker that does not run. */
import type { Command } from 'commander'

export function addBroker(program: Command, ended: (code: number) => void): void {
  const group = program
    .command('broker')
    .description("look after the files of the embedded broker, while it isn't running")
    .exitOverride()
  group
    .command('check')
    .description('show what is damaged, and what would be lost without it (exit code 1: something is)')
    .argument('<folder>', 'the folder, as in broker.bootstrap-servers: embedded:<folder>')
    .exitOverride()
    .action(async (folder: string) => {
      const { checkFolder } = await import('./broker-files.ts')
      ended(checkFolder(folder, process.stdout))
    })
  group
    .command('repair')
    .description('cut off what is damaged, so that the broker starts with the rest')
    .argument('<folder>', 'the folder, as in broker.bootstrap-servers: embedded:<folder>')
    .option('--cut', 'really do it: what is shown as lost is gone for good', false)
    .exitOverride()
    .action(async (folder: string, options: { readonly cut: boolean }) => {
      const { repairFolder } = await import('./broker-files.ts')
      ended(repairFolder(folder, options.cut, process.stdout))
    })
}
