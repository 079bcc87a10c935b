import Base
import Crypto
import HTTPClient
import Status
import Storage
import TestSupport
import Testing

@testable import HTTPServer
@testable import RefreshWorker
@testable import Routes

@Suite("A worker that has begun to listen", .timeLimit(.minutes(10)))
struct FirstRequestTests {
    private let notifier = SystemdNotifier(environment: [:], processID: ProcessSetup.id)

    /// Gives the body a worker that was opened as far as its listeners.
    private func withWorker(
        _ settings: [Setting.Name: String],
        _ body: (inout Worker, OperatorFixture) async throws -> Void
    ) async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let flags = settings.map { ($0, $1.replacing("ROOT", with: fixture.root)) }
            let quiet: [(Setting.Name, String)] = [(.metricsLog, fixture.path("metrics")), (.logLevel, "error")]
            let context = try fixture.context(flags + quiet)
            var worker = try await Daemon(context, notifier: notifier).openWorker()
            try await body(&worker, fixture)
            await worker.listeners?.stop(within: .zero)
            worker.http.shutDown()
            await worker.store.close()
        }
    }

    @Test("has checked its database, and is among the workers that its first answer lists")
    func isKnown() async throws {
        try await withWorker([.listenInternal: "unix:ROOT/internal.sock"]) { worker, _ in
            try await worker.openListeners()
            #expect(worker.listeners != nil && worker.status.database.problem == nil)
            let status = try await worker.context.status(from: worker.store).snapshot()
            #expect(status.workers?.map(\.id) == [worker.context.workerName])
        }
    }

    @Test("has waited long for the database, and yet no loop counts as stalled")
    func waitedLong() async throws {
        try await withWorker([:]) { worker, fixture in
            fixture.time.advance(by: .seconds(600))
            try await worker.openListeners()
            #expect(HTTPListeners.monitoring(worker, phase: Shared(.starting)).health().status == 200)
        }
    }

    @Test("has a key ring that fits: with another one it would answer, and seal what nobody can open")
    func foreignRing() async throws {
        try await withWorker([:]) { _, fixture in
            let other = try fixture.context([(.keyFile, fixture.path("other"))])
            _ = try KeyRingFile.generate(path: fixture.path("other"))
            await #expect(throws: CommandError.self) {
                _ = try await Daemon(other, notifier: notifier).openWorker()
            }
        }
    }

    @Test("takes its report back if it cannot listen")
    func cannotListen() async throws {
        try await withWorker([.listenInternal: "unix:ROOT/missing/internal.sock"]) { worker, _ in
            #expect(try await worker.store.liveWorkers().count == 1)
            do {
                try await worker.openListeners()
                Issue.record("a folder that does not exist holds a socket")
            } catch let error as CommandError {
                #expect(error.exitCode == .cannotCreate)
            }
            #expect(try await worker.store.liveWorkers().isEmpty)
        }
    }
}
