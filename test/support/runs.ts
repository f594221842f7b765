/** Returns the number of cases for a property test. The variable `RUNS` overrides the `usual` number. */
export const runs = (usual: number): number => Number(process.env['RUNS'] ?? usual)
