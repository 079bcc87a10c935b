import Crypto
import Testing

@testable import RefreshWorker
@testable import Routes

@Suite("A worker that has begun to listen")
struct FirstRequestTests {
    @Test("has checked its database, so the first request to it is not refused")
    func databaseIsChecked() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            try fixture.write("a secret of more than thirty-two bytes\n", to: "secret")
            try await StartedWorker.with([.listenInternal: "unix:ROOT/internal.sock"], in: fixture) { started in
                #expect(started.worker.listeners != nil && started.worker.database.problem == nil)
            }
        }
    }
}
