import Base
import Crypto
import Foundation
import HTTPClient
import Storage
import Testing

@testable import RefreshWorker

@Suite("Doctor refuses what the daemon refuses", .timeLimit(.minutes(10)))
struct DoctorAgreementTests {
    /// A configuration, and whether a worker starts with it.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var settings: [Setting.Name: String]
        /// Files to write instead of the valid ones: content and mode.
        var files: [String: (text: String, mode: Int)] = [:]
        var environment: [String: String] = [:]
        let starts: Bool

        init(
            _ name: String,
            _ settings: [Setting.Name: String] = [:],
            files: [String: (text: String, mode: Int)] = [:],
            environment: [String: String] = [:],
            starts: Bool
        ) {
            testDescription = name
            self.settings = settings
            self.files = files
            self.environment = environment
            self.starts = starts
        }
    }

    private static let secret = String(repeating: "s", count: 32)
    private static let app: [Setting.Name: String] = [
        .listen: "127.0.0.1:0", .jwtSecretFile: "ROOT/jwt", .clientID: "1-a", .trustedProxy: "127.0.0.1",
    ]
    private static let login =
        #"{"keys":[{"kty":"EC","crv":"P-256","kid":"a","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#
    private static let services =
        #"{"services": [{"name": "a", "credential_sha256": "\#(String(repeating: "0", count: 64))", "scopes": ["*"], "users": ["*"]}]}"#

    private static func with(_ base: [Setting.Name: String], _ more: [Setting.Name: String?]) -> [Setting.Name: String]
    {
        base.merging(more.compactMapValues(\.self)) { $1 }.filter {
            !(more.keys.contains($0.key) && more[$0.key] == .some(nil))
        }
    }

    private static let cases: [Case] = [
        Case("only a key ring", starts: true),
        Case("no key ring", [.keyFile: "ROOT/none"], starts: false),
        Case("a key ring that others can read", files: ["keys": ("", 0o644)], starts: false),
        Case("the app's routes", app, starts: true),
        Case("no secret", with(app, [.jwtSecretFile: nil]), starts: false),
        Case("a short secret", app, files: ["jwt": ("short", 0o600)], starts: false),
        Case("a secret that others can read", app, files: ["jwt": (secret, 0o644)], starts: false),
        Case(
            "the keys of a login and no secret",
            with(app, [.jwtSecretFile: nil, .appKeys: "ROOT/login", .appAudience: "app"]),
            files: ["login": (login, 0o644)],
            starts: true
        ),
        Case(
            "the keys of a login and an empty secret",
            with(app, [.jwtSecretFile: nil, .appKeys: "ROOT/login", .appAudience: "app"]),
            files: ["login": (login, 0o644)],
            environment: [Setting.jwtSecretName: ""],
            starts: true
        ),
        Case(
            "the keys of a login without issuer and audience",
            with(app, [.appKeys: "ROOT/login"]),
            files: ["login": (login, 0o644)],
            starts: false
        ),
        Case(
            "the keys of a login that are missing",
            with(app, [.appKeys: "ROOT/none", .appAudience: "app"]),
            starts: false
        ),
        Case(
            "the keys of a login that cannot be used",
            with(app, [.appKeys: "ROOT/login", .appAudience: "app"]),
            files: ["login": (login.replacing("P-256", with: "P-384"), 0o644)],
            starts: false
        ),
        Case(
            "services of users whose tokens have a short secret",
            [.listenInternal: "127.0.0.1:0", .servicesFile: "ROOT/services", .jwtSecretFile: "ROOT/jwt"],
            files: ["jwt": ("short", 0o600)],
            starts: false
        ),
        Case("no client id", with(app, [.clientID: nil]), starts: false),
        Case("the internal listener without services", [.listenInternal: "127.0.0.1:0"], starts: true),
        Case("with services", [.listenInternal: "127.0.0.1:0", .servicesFile: "ROOT/services"], starts: true),
        Case(
            "with services that are damaged",
            [.listenInternal: "127.0.0.1:0", .servicesFile: "ROOT/services"],
            files: ["services": ("{", 0o600)],
            starts: false
        ),
        Case("services that are missing", [.listenInternal: "127.0.0.1:0", .servicesFile: "ROOT/none"], starts: false),
        Case("tokens in the clear", [.listenInternal: "0.0.0.0:0", .servicesFile: "ROOT/services"], starts: false),
        Case(
            "a certificate without a key",
            [.listenInternal: "127.0.0.1:0", .internalCertificate: "ROOT/services"],
            starts: false
        ),
        Case(
            "a key without a certificate",
            [.listenInternal: "127.0.0.1:0", .internalKey: "ROOT/services"],
            starts: false
        ),
        Case("a socket in no folder", [.listenInternal: "unix:/nowhere/at/all/socket"], starts: false),
        Case("notices", [.noticeURL: "http://127.0.0.1:9/", .noticeSecretFile: "ROOT/notices"], starts: true),
        Case("a collector", [.otlpEndpoint: "http://127.0.0.1:9"], starts: true),
        Case("notices without a secret", [.noticeURL: "http://127.0.0.1:9/"], starts: false),
        Case(
            "notices with a short secret",
            [.noticeURL: "http://127.0.0.1:9/", .noticeSecretFile: "ROOT/notices"],
            files: ["notices": ("short", 0o600)],
            starts: false
        ),
        Case("client secrets that are missing", [.clientSecretFile: "ROOT/none", .clientID: "1-a"], starts: false),
        Case(
            "a server client with its secret",
            [.serverClientID: "1-b", .clientSecretFile: "ROOT/secrets", .clientID: "1-a"],
            files: ["secrets": ("1-b hush", 0o600)],
            starts: true
        ),
        Case(
            "a server client without its secret",
            [.serverClientID: "1-b", .clientSecretFile: "ROOT/secrets", .clientID: "1-a"],
            files: ["secrets": ("1-a hush", 0o600)],
            starts: false
        ),
        Case("a server client without a file of secrets", [.serverClientID: "1-b", .clientID: "1-a"], starts: false),
        Case("a metrics log in no folder", [.metricsLog: "ROOT/none/log"], starts: false),
        Case("a database that is a folder", [.database: "ROOT"], starts: false),
        Case("a database of something else", files: ["grants.sqlite": ("something else", 0o600)], starts: false),
        Case("a database in no folder", [.database: "ROOT/none/grants"], starts: false),
        Case("a database that is lost", files: ["grants.sqlite.reserve": (" ", 0o600)], starts: false),
        Case("certificates that are missing", [.caFile: "ROOT/none"], starts: false),
        Case("certificates that are none", [.caFile: "ROOT/services"], starts: false),
    ]

    @Test("both decide alike", arguments: cases)
    func agree(_ one: Case) async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            for (name, text) in ["jwt": Self.secret, "notices": Self.secret, "services": Self.services] {
                try fixture.write(text, to: name)
            }
            for (name, file) in one.files {
                if file.text.isEmpty {
                    try fixture.chmod(name, file.mode)
                } else {
                    try fixture.write(file.text, to: name, mode: file.mode)
                }
            }
            let flags = one.settings.map { ($0.key, $0.value.replacing("ROOT", with: fixture.root)) }
            let context = try fixture.context(flags, environment: one.environment)
            let found = try await faults(context)
            #expect(found.isEmpty == one.starts, "doctor: \(found)")
            let refusal = await refusal(context)
            #expect((refusal == nil) == one.starts, "daemon: \(refusal ?? "starts")")
        }
    }

    private func faults(_ context: CommandContext) async throws -> [Check] {
        let doctor = Doctor(context: context)
        let all = doctor.fileChecks() + doctor.servingChecks() + (try await doctor.databaseChecks())
        return all.filter { $0.severity == .fault }
    }

    /// Starts a daemon as far as its listeners, and ends it again; returns the reason if it does not start.
    private func refusal(_ context: CommandContext) async -> String? {
        do {
            try context.configuration.checkServing(environment: context.inputs.environment)
            let notifier = SystemdNotifier(environment: [:], processID: ProcessSetup.id)
            var worker = try await Daemon(context, notifier: notifier).openWorker()
            try await worker.openListeners()
            _ = await worker.listeners?.drain(within: .zero)
            await worker.listeners?.stop(within: .zero)
            worker.http.shutDown()
            await worker.store.close()
            return nil
        } catch {
            return "\(error)"
        }
    }
}
