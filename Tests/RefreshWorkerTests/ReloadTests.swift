import Testing

@testable import WorkerConfiguration

@Suite("A reload")
struct ReloadTests {
    /// A value of each setting other than its default.
    private static let values: [Setting.Name: String] = [
        .database: "/tmp/other.sqlite",
        .keyFile: "/tmp/keys",
        .clientID: "1234-other.apps.googleusercontent.com",
        .clientSecretFile: "/tmp/client-secret",
        .tokenEndpoint: "https://example.com/token",
        .userinfoEndpoint: "https://example.com/userinfo",
        .tokeninfoEndpoint: "https://example.com/tokeninfo",
        .revocationEndpoint: "https://example.com/revoke",
        .caFile: "/tmp/ca.pem",
        .metricsLog: "/tmp/metrics.jsonl",
        .logLevel: "debug",
        .maxRate: "7",
        .summaryInterval: "7",
        .stopDeadline: "7",
        .listen: "127.0.0.1:8080",
        .listenInternal: "unix:/tmp/internal.sock",
        .internalCertificate: "/tmp/internal.pem",
        .internalKey: "/tmp/internal.key",
        .internalMetrics: "yes",
        .socketMode: "0600",
        .trustedProxy: "10.0.0.1",
        .googleCallsPerMinute: "7",
        .linkByEmail: "any",
        .jwtSecretFile: "/tmp/jwt",
        .sessionGrace: "7",
        .acceptFormerRefreshTokensUntil: "2027-03-31",
        .servicesFile: "/tmp/services.json",
        .securityEventsEndpoint: "https://example.com/events",
        .noticeURL: "https://example.com/notices",
        .noticeSecretFile: "/tmp/notice-secret",
    ]
    /// The settings that a running worker applies when its configuration is read again.
    private static let applied: Set<Setting.Name> = [.logLevel, .maxRate]
    /// The file itself, and an option that a daemon does not have.
    private static let neverReloaded: Set<Setting.Name> = [.config, .runOnce]

    @Test("names each changed setting that it does not apply", arguments: Setting.Name.allCases)
    func needsRestart(name: Setting.Name) throws {
        guard !Self.neverReloaded.contains(name) else { return }
        let value = try #require(Self.values[name])
        let changed = try TestMachine(file: "\(name.environmentName)=\(value)").resolve()
        let pending = changed.settingsThatNeedRestart(comparedWith: try TestMachine(file: "").resolve())
        #expect(pending == (Self.applied.contains(name) ? [] : ["--\(name.rawValue)"]))
    }
}
