import Foundation
import Testing

@Suite("A grant under random events", .timeLimit(.minutes(10)))
struct GrantLifeModelTests {
    /// `MODEL_ROUNDS` runs more rounds; `MODEL_SEED` begins with the seed of a failure.
    @Test("keeps the last stored token, and is never revived after its user ended it")
    func rounds() async throws {
        let environment = ProcessInfo.processInfo.environment
        let rounds = environment["MODEL_ROUNDS"].flatMap { UInt64($0) } ?? 200
        let first = environment["MODEL_SEED"].flatMap { UInt64($0) } ?? 1
        for seed in first..<(first + rounds) {
            do {
                try await GrantLifeModel(seed: seed).run(60)
            } catch {
                Issue.record("run again with MODEL_SEED=\(seed) MODEL_ROUNDS=1: \(error)")
                return
            }
        }
    }
}
