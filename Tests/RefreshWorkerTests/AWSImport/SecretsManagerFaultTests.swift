import TestSupport
import Testing

@testable import Commands
@testable import Worker

@Suite("Faults of AWS Secrets Manager", .timeLimit(.minutes(10)))
struct SecretsManagerFaultTests {
    static let temporaryFaults: [[ScriptedServer.Step]] = [
        fault(400, "ThrottlingException"), fault(429, "Whatever"), fault(500, "InternalServiceError"),
        answer("<html>", status: "503 No"), [.close],
    ]

    @Test("temporary ones are tried again after a wait", arguments: temporaryFaults.indices)
    func retried(position: Int) async throws {
        let fixture = try SecretsManagerFixture()
        fixture.service.put("gmail/user/a", try secretText("a"))
        fixture.service.intercept { _, _, number in number % 3 == 0 ? nil : Self.temporaryFaults[position] }
        #expect(try await fixture.runImport().grants.stored == 1)
        let pauses = fixture.pauses.list
        #expect(pauses.count == 4)
        #expect(pauses.allSatisfy { $0 >= .seconds(1) && $0 <= .seconds(2) })
    }

    @Test("persistent ones end the command after some tries, for a later run")
    func persistentFault() async throws {
        let fixture = try SecretsManagerFixture()
        fixture.service.intercept { _, _, _ in fault(400, "ThrottlingException") }
        let error = try #require(await #expect(throws: SecretsManagerFault.self) { try await fixture.runImport() })
        #expect(error.failure(for: fixture.options).exitCode == .leftForLater)
        #expect(fixture.service.calls.count == SecretsManagerClient.maximumTries)
        #expect(fixture.pauses.list.count == SecretsManagerClient.maximumTries - 1)
        #expect(fixture.pauses.list.allSatisfy { $0 <= .seconds(30) })
    }

    static let permanentFaults: [(steps: [ScriptedServer.Step], exit: ExitCode, words: [String])] = [
        (
            fault(400, "AccessDeniedException"), .configuration,
            ["secretsmanager:ListSecrets", "secretsmanager:GetSecretValue"]
        ),
        (fault(400, "UnrecognizedClientException"), .configuration, ["does not know these credentials"]),
        (fault(400, "ExpiredTokenException"), .configuration, ["session token has expired"]),
        (fault(400, "InvalidSignatureException"), .configuration, ["secret access key does not belong"]),
        (fault(403, "InvalidSignatureException", "Signature expired: 2026 KEYSECRET"), .configuration, ["clock"]),
        (fault(403, "InvalidSignatureException", "Signature not yet current"), .configuration, ["clock"]),
        (fault(400, "ValidationException"), .inputUnreadable, ["refuses ListSecrets", "ValidationException"]),
        (fault(400, "Odd code\u{1b}[2J"), .configuration, ["is not AWS Secrets Manager"]),
        (answer("<html>KEYSECRET", status: "404 No"), .configuration, ["is not AWS Secrets Manager", "status 404"]),
        (answer("not JSON"), .configuration, ["is not AWS Secrets Manager"]),
        (answer("{}"), .configuration, ["is not AWS Secrets Manager"]),
        (answer("{\"SecretList\":[],\"NextToken\":\"same\"}"), .configuration, ["the same page again"]),
    ]

    @Test("permanent ones are reported without the service's own text", arguments: permanentFaults.indices)
    func ends(position: Int) async throws {
        let (steps, exit, words) = Self.permanentFaults[position]
        let fixture = try SecretsManagerFixture()
        fixture.service.intercept { _, _, _ in steps }
        let error = try #require(await #expect(throws: SecretsManagerFault.self) { try await fixture.runImport() })
        let failure = error.failure(for: fixture.options)
        #expect(failure.exitCode == exit)
        for word in words { #expect(failure.message.contains(word), "\(failure.message)") }
        #expect(!failure.message.contains("KEYSECRET") && !failure.message.contains("\u{1b}"))
        #expect(fixture.pauses.list.isEmpty)
    }

    @Test("a refused connection is reported as such")
    func unreachable() async throws {
        let fixture = try SecretsManagerFixture()
        fixture.server.stop()
        let error = try #require(await #expect(throws: SecretsManagerFault.self) { try await fixture.runImport() })
        let failure = error.failure(for: fixture.options)
        #expect(failure.exitCode == .leftForLater)
        #expect(failure.message.contains("cannot be reached"))
    }

    @Test(
        "the client id is the secret's text",
        arguments: [
            ("1-a.apps.googleusercontent.com", nil), ("1-a.apps.googleusercontent.com\r\n", nil),
            ("", "is empty"), ("two words", "not a client id"), ("GOCSPX-secret", "looks like a token"),
        ] as [(String, String?)]
    )
    func clientID(text: String, problem: String?) async throws {
        let fixture = try SecretsManagerFixture()
        fixture.service.put(SecretsManagerOptions.clientIDName, text)
        guard let problem else {
            #expect(try await SecretsManagerReader.clientID(from: fixture.client) == "1-a.apps.googleusercontent.com")
            return
        }
        let failure = try #require(
            await #expect(throws: CommandFailure.self) { try await SecretsManagerReader.clientID(from: fixture.client) }
        )
        #expect(failure.message.contains(problem) && failure.message.contains("--client-id"))
        #expect(!failure.message.contains("GOCSPX"))
    }

    @Test("a missing client id names the option to give")
    func missingClientID() async throws {
        let fixture = try SecretsManagerFixture()
        let error = try #require(
            await #expect(throws: SecretsManagerFault.self) {
                try await SecretsManagerReader.clientID(from: fixture.client)
            }
        )
        #expect(error.failure(for: fixture.options).message.contains("--client-id"))
    }

    @Test(
        "each region has its address",
        arguments: [
            ("eu-west-1", "https://secretsmanager.eu-west-1.amazonaws.com/"),
            ("cn-north-1", "https://secretsmanager.cn-north-1.amazonaws.com.cn/"),
        ]
    )
    func addresses(region: String, url: String) {
        #expect(SecretsManagerOptions(prefix: "p", region: region).url == url)
        #expect(SecretsManagerOptions(prefix: "p", region: region, endpoint: "http://[::1]/").url == "http://[::1]/")
    }
}
