/** `hub2mqtt doctor`: prints each finding as soon as it is there, and a report for an issue. */
import { systemClock } from '../../base/clock.ts'
import { VERSION } from '../../base/version.ts'
import { loadConfig } from '../../config/load.ts'
import { type Body, exitCodes } from '../command.ts'
import { waiting } from '../progress.ts'
import { examine, lineOf, reportOf } from './doctor.ts'

export const doctor: Body<{ readonly config: string | undefined }> = async ({ env, print }, { config: file }) => {
  const { config, secrets, warnings } = loadConfig({ file, env })
  const findings = []
  let stop = waiting('looking')
  for await (const finding of examine({ config, secrets, warnings, clock: systemClock })) {
    stop()
    findings.push(finding)
    print(lineOf(finding))
    stop = waiting('looking further')
  }
  stop()
  print(`\nFor a bug report:\n\n${reportOf(findings, config, VERSION)}`)
  return findings.some(({ outcome }) => outcome === 'problem') ? exitCodes.failed.code : exitCodes.ok.code
}
