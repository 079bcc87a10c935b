import Base
import Crypto
import GoogleOAuth
import HTTPClient
import Telemetry
import Testing

@testable import RefreshWorker

@Suite("The configuration")
struct ConfigurationTests {
    @Test("has the documented defaults when nothing is given")
    func defaults() throws {
        let configuration = try TestMachine().resolve()
        #expect(configuration.configurationFile == nil)
        #expect(configuration.database == .file("/var/lib/refresh-worker/grants.sqlite"))
        #expect(configuration.keyFile == "/etc/refresh-worker/keys")
        #expect(configuration.clientIDs.isEmpty)
        #expect(configuration.clientSecretFile == nil)
        #expect(configuration.endpoints.token.url == "https://oauth2.googleapis.com/token")
        #expect(configuration.endpoints.userinfo.url == "https://openidconnect.googleapis.com/v1/userinfo")
        #expect(configuration.endpoints.tokeninfo.url == "https://oauth2.googleapis.com/tokeninfo")
        #expect(configuration.endpoints.revocation.url == "https://oauth2.googleapis.com/revoke")
        #expect(configuration.caFile == nil)
        #expect(configuration.metricsLog == .standardOutput)
        #expect(configuration.logLevel == .notice)
        #expect(configuration.maxRate == 200)
        #expect(configuration.summaryInterval == .seconds(60))
        #expect(configuration.stopDeadline == .seconds(20))
        #expect(configuration.runsOnce == false)
    }

    @Test("lists every setting once")
    func tableIsComplete() {
        #expect(Setting.all.map(\.name) == Setting.Name.allCases)
    }

    /// The values of flag, variable and file, and the resulting one.
    @Test(
        "takes flags before environment, file and default",
        arguments: [
            (nil, nil, nil, 200.0),
            (nil, nil, "3", 3),
            (nil, "2", nil, 2),
            (nil, "2", "3", 2),
            ("1", nil, "3", 1),
            ("1", "2", "3", 1),
            (nil, "", "3", 3),
            (nil, "", "", 200),
        ] as [(String?, String?, String?, Double)]
    )
    func precedence(flag: String?, variable: String?, line: String?, expected: Double) throws {
        let machine = TestMachine(
            flags: flag.map { [(.maxRate, $0)] } ?? [],
            environment: variable.map { ["REFRESH_WORKER_MAX_RATE": $0] } ?? [:],
            file: line.map { "REFRESH_WORKER_MAX_RATE=\($0)" }
        )
        #expect(try machine.resolve().maxRate == expected)
    }

    @Test("is named by a flag or by a variable")
    func namesFile() throws {
        var machine = TestMachine(environment: ["REFRESH_WORKER_CONFIG": "/b"])
        machine.files = ["/a": "REFRESH_WORKER_LOG_LEVEL=info", "/b": "REFRESH_WORKER_LOG_LEVEL=debug"]
        #expect(try machine.resolve().logLevel == .debug)
        machine.flags = [(.config, "/a")]
        #expect(try machine.resolve().logLevel == .info)
        #expect(try machine.resolve().configurationFile == "/a")
    }

    @Test("takes the last of two lines with one key, as systemd does, and of two equal flags")
    func lastWins() throws {
        let file = "REFRESH_WORKER_MAX_RATE=1\nREFRESH_WORKER_MAX_RATE=2"
        #expect(try TestMachine(file: file).resolve().maxRate == 2)
        #expect(try TestMachine(flags: [(.maxRate, "1"), (.maxRate, "2")]).resolve().maxRate == 2)
    }

    /// Client ids of flags, `REFRESH_WORKER_CLIENT_ID`, `GOOGLE_CLIENT_ID`, a file and a credential.
    @Test(
        "takes client ids from the layer of highest precedence that has any",
        arguments: [
            (["a", "b"], "c", "d", "e", "f", ["a", "b"]),
            (["a,b", "a"], nil, nil, nil, nil, ["a", "b"]),
            ([], "c, c2,", "d", "e", "f", ["c", "c2"]),
            ([], nil, "d", "e", "f", ["d"]),
            ([], nil, nil, "e,e2", "f", ["e", "e2"]),
            ([], nil, nil, nil, "f\r\n\n f2 \n", ["f", "f2"]),
            ([], nil, nil, nil, nil, []),
        ] as [([String], String?, String?, String?, String?, [String])]
    )
    func clientIDs(
        flags: [String],
        own: String?,
        shared: String?,
        line: String?,
        credential: String?,
        expected: [String]
    ) throws {
        var machine = TestMachine(flags: flags.map { (.clientID, $0) }, file: line.map { "GOOGLE_CLIENT_ID=\($0)" })
        machine.environment["REFRESH_WORKER_CLIENT_ID"] = own
        machine.environment["GOOGLE_CLIENT_ID"] = shared
        machine.environment["CREDENTIALS_DIRECTORY"] = "/run/credentials/worker"
        machine.files["/run/credentials/worker/client-id"] = credential
        #expect(try machine.resolve().clientIDs == expected)
    }

    @Test("takes no file for a credential if the variable of their folder is empty")
    func emptyCredentialsVariable() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            try fixture.chmod("keys", 0o440)
            let given = try fixture.context(environment: ["CREDENTIALS_DIRECTORY": fixture.root])
            #expect(throws: Never.self) { try given.openVault() }
            let empty = try fixture.context(environment: ["CREDENTIALS_DIRECTORY": ""])
            #expect(throws: FileError.self) { try empty.openVault() }
        }
    }

    @Test("prefers the worker's own variable to the shared one, at any place in the file")
    func ownNameWins() throws {
        let file = "REFRESH_WORKER_CLIENT_ID=own\nGOOGLE_CLIENT_ID=shared"
        #expect(try TestMachine(file: file).resolve().clientIDs == ["own"])
    }

    @Test("takes a key ring that systemd passes, unless another is named")
    func keyRingCredential() throws {
        var machine = TestMachine(environment: ["CREDENTIALS_DIRECTORY": "/run/c"])
        #expect(try machine.resolve().keyFile == "/etc/refresh-worker/keys")
        machine.files["/run/c/key-ring"] = "sealed"
        #expect(try machine.resolve().keyFile == "/run/c/key-ring")
        machine.flags = [(.keyFile, "/mine")]
        #expect(try machine.resolve().keyFile == "/mine")
    }

    @Test(
        "parses each kind of value",
        arguments: [
            ("yes", true), ("true", true), ("On", true), ("1", true), ("no", false), ("0", false), ("off", false),
        ]
    )
    func switches(text: String, expected: Bool) throws {
        #expect(try TestMachine(environment: ["REFRESH_WORKER_RUN_ONCE": text]).resolve().runsOnce == expected)
    }

    @Test("writes the metrics log to a file or to standard output")
    func metricsLog() throws {
        #expect(try TestMachine(flags: [(.metricsLog, "-")]).resolve().metricsLog == .standardOutput)
        #expect(try TestMachine(flags: [(.metricsLog, "/m")]).resolve().metricsLog == .file("/m"))
    }

    @Test("accepts a rate below one and up to the limit", arguments: [("0.5", 0.5), ("100000", 100_000)])
    func rates(text: String, expected: Double) throws {
        #expect(try TestMachine(flags: [(.maxRate, text)]).resolve().maxRate == expected)
    }
}
