import { systemClock } from '../base/clock.ts'
import { VERSION } from '../base/version.ts'
import { describeConfig } from '../config/describe.ts'
import { loadConfig } from '../config/load.ts'
import { type Body, type ConfigFlag, exitCodes } from './command.ts'
import { waiting } from './progress.ts'

export const checkConfig: Body<ConfigFlag & { readonly connect: boolean }> = async (io, flags) => {
  if (flags.connect) return await doctor(io, flags)
  const { config, warnings } = loadConfig({ file: flags.config, env: io.env })
  for (const warning of warnings) io.warn(`warning: ${warning}`)
  io.print(describeConfig(config))
  return exitCodes.ok.code
}

export const doctor: Body<ConfigFlag> = async ({ env, print }, { config: file }) => {
  const { config, secrets, warnings } = loadConfig({ file, env })
  const { examine, lineOf, reportOf } = await import('./doctor/doctor.ts')
  const findings = []
  let stop = waiting('examining')
  for await (const finding of examine({ config, secrets, warnings, clock: systemClock })) {
    stop()
    findings.push(finding)
    print(lineOf(finding))
    stop = waiting('examining')
  }
  stop()
  print(`\nFor a bug report:\n\n${reportOf(findings, config, VERSION)}`)
  return findings.some(({ outcome }) => outcome === 'problem') ? exitCodes.failed.code : exitCodes.ok.code
}
