/** The report of `hub2mqtt doctor`, made by the daemon. */
import type { Clock } from '../../../base/clock.ts'
import { examine, lineOf, reportOf } from '../../../cli/doctor/doctor.ts'
import type { Finding } from '../../../cli/doctor/finding.ts'
import { secretsOf } from '../../../config/describe.ts'
import type { Live } from '../../../config/options.ts'

/** Looks at everything that the configuration of now needs; the text is as on the command line. */
export async function doctorReport({ value: config }: Live, version: string, clock: Clock): Promise<string> {
  const findings: Finding[] = []
  for await (const finding of examine({ config, secrets: secretsOf(config), warnings: [], clock }))
    findings.push(finding)
  return `${findings.map(lineOf).join('\n')}\n\nFor a bug report:\n\n${reportOf(findings, config, version)}`
}
