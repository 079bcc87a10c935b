import Crypto
import Synchronization
import Testing

@testable import GoogleOAuth
@testable import Scheduler

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

    @Test("is recorded by its fingerprint with the success of the client, and is not written out")
    func fingerprint() async throws {
        let secret = Secret("secret of the first")
        let fixture = try RunningEngineFixture(clientSecrets: ["first": secret]) { _ in .good }
        try await fixture.add(1...1, of: "first", overdueSince: .seconds(1))
        try await fixture.add(2...2, of: "public", overdueSince: .seconds(1))
        await fixture.runLoopIteration()
        let first = try await fixture.health(of: "first")
        #expect(first.provenSecretFingerprint == ClientSecretFingerprint(of: secret, clientID: "first"))
        #expect(try await fixture.health(of: "public").provenSecretFingerprint == .none)
        #expect(!String(decoding: first.stored, as: UTF8.self).contains("secret of"))
    }
}
