/** `hub2mqtt check-config`: prints the effective configuration, and its warnings apart. */
import { describeConfig } from '../config/describe.ts'
import { loadConfig } from '../config/load.ts'
import { type Body, exitCodes } from './command.ts'

interface Given {
  readonly config: string | undefined
  readonly connect: boolean
}

export const checkConfig: Body<Given> = async (io, flags) => {
  if (flags.connect) return await (await import('./doctor/command.ts')).doctor(io, flags)
  const { config, warnings } = loadConfig({ file: flags.config, env: io.env })
  for (const warning of warnings) io.warn(`warning: ${warning}`)
  io.print(describeConfig(config))
  return exitCodes.ok.code
}
