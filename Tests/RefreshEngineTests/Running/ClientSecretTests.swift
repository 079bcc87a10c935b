import GoogleOAuth
import Secrets
import Synchronization
import Testing

@Suite("A client's secret", .timeLimit(.minutes(10)))
struct ClientSecretTests {
    @Test("is sent with its own client id and with no other")
    func ownClientID() async throws {
        let sent = Mutex<[String: String]>([:])
        let secrets = ["first": Secret("secret of the first"), "second": Secret("secret of the second")]
        let fixture = try RunningEngineFixture(clientSecrets: secrets) { client in
            sent.withLock { $0[client.id] = client.secret?.reveal() ?? "none" }
            return .good
        }
        try await fixture.add(1...1, of: "first", overdueSince: .seconds(1))
        try await fixture.add(2...2, of: "second", overdueSince: .seconds(1))
        try await fixture.add(3...3, of: "public", overdueSince: .seconds(1))
        await fixture.runLoopIteration()
        let expected = ["first": "secret of the first", "second": "secret of the second", "public": "none"]
        #expect(sent.withLock { $0 } == expected)
    }
}
