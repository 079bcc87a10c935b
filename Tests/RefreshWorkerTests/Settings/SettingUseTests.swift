import Crypto
import Testing

@testable import RefreshWorker
@testable import Routes
@testable import Scheduler

/// Each setting from the configuration file to the part of the worker that uses it.
@Suite("A setting", .timeLimit(.minutes(10)))
struct SettingUseTests {
    private static let reloadable = Setting.all.filter { $0.change.reloadGroup != nil }.map(\.name)

    @Test("reaches each part that uses it", arguments: Setting.Name.allCases)
    func isUsed(name: Setting.Name) async throws {
        let sample = SettingSample.of(name)
        try await Self.withFixture { fixture in
            let seen = sample.seen.replacing("ROOT", with: fixture.root)
            for text in try await Self.uses(name, with: sample.others, in: fixture) {
                #expect(!text.contains(seen), "without the setting")
            }
        }
        try await Self.withFixture { fixture in
            let seen = sample.seen.replacing("ROOT", with: fixture.root)
            let settings = sample.others.merging([name: sample.given]) { $1 }
            for text in try await Self.uses(name, with: settings, in: fixture) {
                #expect(text.contains(seen))
            }
        }
    }

    @Test("reaches each part of a running worker if a reload applies it", arguments: reloadable)
    func isReloaded(name: Setting.Name) async throws {
        let sample = SettingSample.of(name)
        try await Self.withFixture { fixture in
            try await StartedWorker.with(sample.others, in: fixture) { started in
                try StartedWorker.write(sample.others.merging([name: sample.given]) { $1 }, in: fixture)
                #expect(try await started.worker.reloadConfiguration() == [])
                for text in try await started.uses(name) {
                    #expect(text.contains(sample.seen.replacing("ROOT", with: fixture.root)))
                }
            }
        }
    }

    @Test("is named by each reload until a restart, if a reload does not apply it")
    func needsRestart() async throws {
        try await Self.withFixture { fixture in
            try await StartedWorker.with([:], in: fixture) { started in
                try StartedWorker.write([.summaryInterval: "7", .maxRate: "7"], in: fixture)
                for _ in 1...2 {
                    #expect(try await started.worker.reloadConfiguration() == ["--summary-interval"])
                }
                #expect(started.worker.context.configuration.summaryInterval == .seconds(60))
            }
        }
    }

    @Test(
        "keeps its value if the reload of another one fails",
        arguments: [
            [.clientSecretFile: "ROOT/missing"], [.serverClientID: "1234-server.apps.googleusercontent.com"],
            [.listen: "127.0.0.1:0", .clientID: ","],
            [.internalCertificate: "ROOT/pem"],
        ] as [[Setting.Name: String]]
    )
    func refused(bad: [Setting.Name: String]) async throws {
        try await Self.withFixture { fixture in
            try await StartedWorker.with([:], in: fixture) { started in
                let settings: [Setting.Name: String] = [.maxRate: "7", .logLevel: "warning"]
                try StartedWorker.write(settings.merging(bad) { $1 }, in: fixture)
                await #expect(throws: (any Error).self) { try await started.worker.reloadConfiguration() }
                #expect(try await started.uses(.maxRate) == ["200.0", "200.0"])
                #expect(try await started.uses(.logLevel) == ["error"])
            }
        }
    }

    @Test("of the clients cannot be emptied while the routes are served, even if the changed file does not serve them")
    func clientsStay() async throws {
        try await Self.withFixture { fixture in
            try await StartedWorker.with([.listen: "127.0.0.1:0"], in: fixture) { started in
                try StartedWorker.write([.clientID: ""], in: fixture)
                await #expect(throws: CommandError.self) { try await started.worker.reloadConfiguration() }
                #expect(started.dependencies.clientIDs == ["1234-first.apps.googleusercontent.com"])
            }
        }
    }

    @Test("of the clients can lose a client id with a secret, which its stored grants still get")
    func clientRemoved() async throws {
        try await Self.withFixture { fixture in
            let (kept, removed) = ("1-kept.apps.googleusercontent.com", "2-removed.apps.googleusercontent.com")
            try fixture.write("\(kept) first\n\(removed) second\n", to: "two-secrets")
            let settings: [Setting.Name: String] = [.clientSecretFile: "ROOT/two-secrets"]
            let both = settings.merging([.clientID: "\(kept),\(removed)"]) { $1 }
            let one = settings.merging([.clientID: kept]) { $1 }
            try await StartedWorker.with(both, in: fixture) { started in
                try StartedWorker.write(one, in: fixture)
                #expect(try await started.worker.reloadConfiguration() == [])
                #expect(started.dependencies.clientIDs == [kept])
                #expect(await started.worker.engine.dispatcher.clientSecrets[removed]?.secret.reveal() == "second")
            }
            try await StartedWorker.with(one, in: fixture) { started in
                #expect(await started.worker.engine.dispatcher.clientSecrets[removed]?.secret.reveal() == "second")
            }
        }
    }

    /// The daemon checks the settings of the listeners first, and one pass does not need them.
    @Test("chooses between the daemon and one pass")
    func runsOnce() async throws {
        try await Self.withFixture { fixture in
            let flags: [(Setting.Name, String)] = [
                (.keyFile, fixture.path("missing")), (.noticeURL, "https://notices.example/"),
            ]
            let refusal = await #expect(throws: CommandError.self) { try await fixture.context(flags).run([]) }
            #expect(refusal?.message == "--notice-url: needs --notice-secret-file: notices are signed")
            let once = flags + [(.runOnce, "yes")]
            await #expect(throws: (any Error).self) {
                do {
                    _ = try await fixture.context(once).run([])
                } catch {
                    #expect(CommandError(error).message.contains("missing"))
                    throw error
                }
            }
        }
    }

    /// Returns the parts' values, or the error of a start that fails.
    private static func uses(
        _ name: Setting.Name,
        with settings: [Setting.Name: String],
        in fixture: OperatorFixture
    ) async throws -> [String] {
        var settings = settings
        var file = "worker.conf"
        if let other = settings.removeValue(forKey: .config) {
            file = String(other.dropFirst("ROOT/".count))
            settings[.summaryInterval] = "77"
        }
        do {
            return try await StartedWorker.with(settings, file: file, in: fixture) { try await $0.uses(name) }
        } catch {
            return [CommandError(error).message]
        }
    }

    /// Runs the body with a key ring and the files that samples name.
    private static func withFixture(_ body: (OperatorFixture) async throws -> Void) async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            _ = try KeyRingFile.addBinding(path: fixture.keyFile)
            try fixture.write("the-secret-of-the-client\n", to: "client-secret")
            try fixture.write("1234-server.apps.googleusercontent.com hush\n", to: "server-secret")
            try fixture.write("a secret of more than thirty-two bytes\n", to: "secret")
            try fixture.write("CERTIFICATE-----\n", to: "pem")
            let hash = String(repeating: "ab", count: 32)
            try fixture.write(
                #"{"services": [{"name": "mailer", "credential_sha256": "\#(hash)", "scopes": ["*"], "users": ["*"]}]}"#,
                to: "services"
            )
            try await body(fixture)
        }
    }
}
