/** Returns the number of cases for a property test: `RUNS` if it is set, for a long search, or else `usual`. */
export const runs = (usual: number): number => Number(process.env['RUNS'] ?? usual)
