import Crypto
import Scheduler
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Status
@testable import Storage

@Suite("The status of an installation")
struct InstallationStatusTests {
    private struct NoKeyRing: Error {}

    /// An installation on a server, none of whose files can be read.
    private struct UnreadableInstallation: InstallationFacts {
        let clientIDs = ["configured"]
        let maxRate = 5.0
        let deliversNotices = false
        let receivesSecurityEvents = false

        func readKeyRing() throws -> KeyRing { throw NoKeyRing() }

        func databaseFacts(asksServer: Bool) -> DatabaseFacts {
            var facts = DatabaseFacts(location: "postgres:///grants")
            facts.schema = asksServer ? 1 : nil
            return facts
        }

        func spilledFiles() -> [SpilledFile]? { nil }

        func nightlyBackups() -> NightlyBackups? { nil }
    }

    @Test("is known as far as its files can be read, and asks a server only for a complete snapshot")
    func unreadable() async throws {
        let time = ManualTime()
        let source = InstallationStatus(
            store: try TestStore(time: time),
            installation: UnreadableInstallation(),
            time: time,
            diagnostics: DiagnosticLog(level: .error, time: time)
        )
        let frequent = try await source.snapshot(includesSlowParts: false)
        #expect(frequent.isKeyRingUnreadable && frequent.spilledFiles == nil && frequent.schema == nil)
        #expect(frequent.clients.map(\.id) == ["configured"] && frequent.database == "postgres:///grants")
        let complete = try await source.snapshot()
        #expect(complete.schema == 1 && complete.notices == nil && complete.at == time.now)
    }
}
