import Crypto
import Foundation
import Storage
import Testing

@testable import RefreshWorker

@Suite("Doctor", .timeLimit(.minutes(10)))
struct DoctorTests {
    /// Makes all checks except those over the network.
    private func diagnose(_ fixture: OperatorFixture, _ flags: [(Setting.Name, String)] = []) async throws
        -> [Check]
    {
        let doctor = Doctor(context: try fixture.context(flags))
        let files = doctor.fileChecks() + doctor.servingChecks()
        return files + (try await doctor.databaseChecks()) + (try await doctor.clockChecks())
    }

    /// Makes a key ring, and a database with some grants.
    private func setUp(_ fixture: OperatorFixture) async throws {
        _ = try KeyRingFile.generate(path: fixture.keyFile)
        let store = try fixture.openStore()
        try await fixture.insert(1...3, sealedBy: try fixture.openVault(), into: store)
        await store.close()
    }

    @Test("a valid set-up is ok in every check")
    func good() async throws {
        try await OperatorFixture.with { fixture in
            try await setUp(fixture)
            try fixture.write("REFRESH_WORKER_LOG_LEVEL=error\n", to: "conf")
            let checks = try await diagnose(fixture, [(.config, fixture.path("conf")), (.clientID, "1-a")])
            #expect(checks.filter { $0.severity != .ok } == [])
            let subjects = Set(checks.map(\.name))
            #expect(subjects.isSuperset(of: ["configuration", "key ring", "database", "database content"]))
            #expect(subjects.isSuperset(of: ["keys in use", "clock", "boot id"]))
            #expect(checks.exitCode == .success)
        }
    }

    /// A change to a valid set-up, and the only subject that must report it.
    enum Damage: String, CaseIterable, Sendable {
        case keyFileOpenToOthers
        case keyFileMissing
        case keyFileGarbled
        case foreignKeyRing
        case databaseOpenToOthers
        case databaseGarbage
        case databaseDamagedInside
        case databaseOfAnotherProgram
        case databaseIsFolder
        case databaseFolderMissing
        case metricsFolderMissing
        case certificatesMissing
        case certificatesNoPEM
        case secretOpenToOthers
        case secretWithoutClientID

        var subject: String {
            switch self {
            case .keyFileOpenToOthers, .keyFileMissing, .keyFileGarbled: "key ring"
            case .foreignKeyRing: "keys in use"
            case .databaseOpenToOthers, .databaseGarbage, .databaseIsFolder, .databaseFolderMissing: "database"
            case .databaseDamagedInside, .databaseOfAnotherProgram: "database content"
            case .metricsFolderMissing: "metrics log"
            case .certificatesMissing, .certificatesNoPEM: "certificates"
            case .secretOpenToOthers, .secretWithoutClientID: "client secret"
            }
        }

        var advice: String {
            switch self {
            case .keyFileOpenToOthers, .databaseOpenToOthers, .secretOpenToOthers: "chmod 600"
            case .keyFileMissing: "restore it from its copy"
            case .keyFileGarbled: "fix the line"
            case .foreignKeyRing: "restore the key ring"
            case .databaseGarbage, .databaseDamagedInside: "backup in its place"
            case .databaseOfAnotherProgram: "Name another file"
            case .databaseIsFolder, .certificatesNoPEM: "name "
            case .databaseFolderMissing, .metricsFolderMissing: "mkdir -p"
            case .certificatesMissing: "check the path"
            case .secretWithoutClientID: "line 1: holds a secret without its client id"
            }
        }

        /// Makes the change and returns the flags for it.
        func apply(to fixture: OperatorFixture) throws -> [(Setting.Name, String)] {
            switch self {
            case .keyFileOpenToOthers: try fixture.chmod("keys", 0o644)
            case .keyFileMissing: try FileManager.default.removeItem(atPath: fixture.keyFile)
            case .keyFileGarbled: try fixture.write("9f86d081 short\n", to: "keys")
            case .foreignKeyRing:
                try FileManager.default.removeItem(atPath: fixture.keyFile)
                _ = try KeyRingFile.generate(path: fixture.keyFile)
            case .databaseOpenToOthers: try fixture.chmod("grants.sqlite", 0o644)
            case .databaseGarbage: try fixture.write(String(repeating: "garbage", count: 1000), to: "grants.sqlite")
            case .databaseDamagedInside: try overwriteSecondPage(of: fixture.database)
            case .databaseOfAnotherProgram: try changeApplicationID(of: fixture.database)
            case .databaseIsFolder: return [(.database, fixture.root)]
            case .databaseFolderMissing: return [(.database, fixture.path("no/grants.sqlite"))]
            case .metricsFolderMissing: return [(.metricsLog, fixture.path("no/metrics.log"))]
            case .certificatesMissing: return [(.caFile, fixture.path("ca.pem"))]
            case .certificatesNoPEM:
                try fixture.write("DER", to: "ca.pem")
                return [(.caFile, fixture.path("ca.pem"))]
            case .secretOpenToOthers:
                try fixture.write("secret", to: "secret", mode: 0o644)
                return [(.clientSecretFile, fixture.path("secret"))]
            case .secretWithoutClientID:
                try fixture.write("secret\n", to: "secret")
                return [(.clientSecretFile, fixture.path("secret"))]
            }
            return []
        }

        private func overwriteSecondPage(of path: String) throws {
            let file = try FileHandle(forUpdating: URL(filePath: path))
            try file.seek(toOffset: 4096)
            try file.write(contentsOf: Data(repeating: 0xAA, count: 4096))
            try file.close()
        }

        private func changeApplicationID(of path: String) throws {
            let file = try FileHandle(forUpdating: URL(filePath: path))
            try file.seek(toOffset: 68)
            try file.write(contentsOf: Data([1, 2, 3, 4]))
            try file.close()
        }
    }

    @Test("each damage is one fault with advice, and ends with 78", arguments: Damage.allCases)
    func broken(damage: Damage) async throws {
        try await OperatorFixture.with { fixture in
            try await setUp(fixture)
            let flags = try damage.apply(to: fixture)
            let names = try fixture.names
            let checks = try await diagnose(fixture, flags)
            let faults = checks.filter { $0.severity == .fault }
            #expect(faults.map(\.name) == [damage.subject])
            #expect(faults.first?.text.contains(damage.advice) == true, "\(faults)")
            #expect(checks.exitCode == .configuration)
            #expect(try fixture.names == names, "the doctor changed something")
        }
    }

    @Test("a missing database is a warning and is not created; nor are the tables of an empty one")
    func noDatabase() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let checks = try await diagnose(fixture, [(.clientID, "1-a")])
            #expect(checks.filter { $0.severity == .warning }.map(\.name) == ["database"])
            #expect(checks.exitCode == .success)
            #expect(try fixture.names == ["keys"])

            try fixture.write("", to: "grants.sqlite")
            #expect(try await diagnose(fixture, [(.clientID, "1-a")]).allSatisfy { $0.severity == .ok })
            #expect(try FileStatus.of(fixture.database)?.size == 0)
        }
    }

    @Test("a configuration that others may change, and an unfinished rotation, are warnings")
    func warnings() async throws {
        try await OperatorFixture.with { fixture in
            try await setUp(fixture)
            _ = try KeyRingFile.addPending(path: fixture.keyFile)
            try fixture.write("", to: "conf", mode: 0o666)
            let checks = try await diagnose(fixture, [(.config, fixture.path("conf")), (.clientID, "1-a")])
            #expect(checks.filter { $0.severity != .ok }.map(\.name) == ["configuration", "key ring"])
        }
    }

    @Test("the form of a client id matters only for Google's endpoints")
    func clientIDs() async throws {
        try await OperatorFixture.with { fixture in
            let google: [(Setting.Name, String)] = [(.tokenEndpoint, "https://oauth2.googleapis.com/token")]
            let odd: [(Setting.Name, String)] = [(.clientID, "odd")]
            let good: [(Setting.Name, String)] = [(.clientID, "1-a.apps.googleusercontent.com")]
            for (flags, severity) in [(google + odd, Check.Severity.warning), (google + good, .ok), (odd, .ok)] {
                let found = Doctor(context: try fixture.context(flags)).fileChecks()
                #expect(found.filter { $0.name == "client id" }.map(\.severity) == [severity])
            }
        }
    }

    @Test("the secret of a client id that is not configured is a warning that names the id")
    func unconfiguredClientSecret() async throws {
        try await OperatorFixture.with { fixture in
            try fixture.write(
                "1-a.apps.googleusercontent.com hush\n2-b.apps.googleusercontent.com hush\n",
                to: "secrets"
            )
            let flags: [(Setting.Name, String)] = [
                (.clientSecretFile, fixture.path("secrets")), (.clientID, "2-b.apps.googleusercontent.com"),
            ]
            let found = Doctor(context: try fixture.context(flags)).fileChecks()
            let check = try #require(found.first { $0.name == "client secret" })
            #expect(check.severity == .warning)
            #expect(check.text.contains("'1-a.apps.googleusercontent.com'"))
            #expect(!check.text.contains("2-b") && !check.text.contains("hush"))
        }
    }

    @Test("a server client of another project than the app's is a warning that names both")
    func serverClientOfOtherProject() async throws {
        try await OperatorFixture.with { fixture in
            let ids = [("1-a", "1-b", Check.Severity.ok), ("1-a", "2-b", .warning), ("app", "server", .ok)]
            for (app, server, severity) in ids {
                try fixture.write("\(server) hush\n", to: "secrets")
                let flags: [(Setting.Name, String)] = [
                    (.clientID, app), (.serverClientID, server), (.clientSecretFile, fixture.path("secrets")),
                ]
                let found = Doctor(context: try fixture.context(flags)).fileChecks()
                let check = try #require(found.first { $0.name == "server client id" })
                #expect(check.severity == severity)
                #expect(check.finding.contains(server))
            }
        }
    }

    @Test("systemd's credentials are read from the folder that it names")
    func credentials() async throws {
        try await OperatorFixture.with { fixture in
            let found = { (folder: String) throws in
                let context = try fixture.context(environment: [Setting.credentialsDirectoryName: folder])
                return Doctor(context: context).fileChecks().first { $0.name == "systemd credentials" }?.severity
            }
            #expect(try found("") == nil)
            #expect(try found(fixture.path("none")) == .fault)
            #expect(try found(fixture.root) == .warning)
            try fixture.write("1-a.apps.googleusercontent.com\n", to: "client-id")
            #expect(try found(fixture.root) == .ok)
        }
    }
}
