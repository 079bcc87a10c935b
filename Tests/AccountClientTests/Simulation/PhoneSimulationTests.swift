import Testing

// One phone at a time: several would occupy the few threads that the other tests of this process need.
@Suite("A phone on a bad network", .serialized, .timeLimit(.minutes(10)))
struct PhoneSimulationTests {
    @Test("An honest phone stays signed in as long as the server's session lives", arguments: 1...100)
    func honestPhone(seed: Int) async throws {
        let phone = try SimulatedPhone(seed: UInt64(seed))
        if let failureReport = try await phone.play(events: 200) {
            Issue.record("\(failureReport), with seed \(seed):\n\(phone.trace.suffix(60).joined(separator: "\n"))")
        }
    }
}
