import Crypto
import HTTPClient
import Testing

@testable import Commands
@testable import Worker

@Suite("Credentials for AWS")
struct AWSCredentialsTests {
    private static let text = """
        # shared
        [other]
        aws_access_key_id=OTHER
        aws_secret_access_key=other/secret=

        [default]
        ; temporary
        aws_access_key_id = AKID
        AWS_SECRET_ACCESS_KEY = a/b+c=
        aws_session_token = t0k=
        region = eu-west-1
        """

    @Test("come from the environment")
    func environment() throws {
        var environment = ["AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "a/b+c="]
        let permanent = try AWSCredentials.read(file: nil, environment: environment)
        #expect(permanent == AWSCredentials(keyID: Secret("AKID"), secretKey: Secret("a/b+c=")))
        environment["AWS_SESSION_TOKEN"] = ""
        #expect(try AWSCredentials.read(file: nil, environment: environment) == permanent)
        environment["AWS_SESSION_TOKEN"] = "t0k="
        #expect(try AWSCredentials.read(file: nil, environment: environment).sessionToken == Secret("t0k="))
    }

    @Test("come from a file, by its profile, regardless of the environment")
    func file() async throws {
        try await OperatorFixture.with { fixture in
            try fixture.write(Self.text, to: "credentials")
            let path = fixture.path("credentials")
            let environment = ["AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "env"]
            #expect(
                try AWSCredentials.read(file: path, environment: environment)
                    == AWSCredentials(keyID: Secret("AKID"), secretKey: Secret("a/b+c="), sessionToken: Secret("t0k="))
            )
            #expect(
                try AWSCredentials.read(file: path, environment: ["AWS_PROFILE": "other"])
                    == AWSCredentials(keyID: Secret("OTHER"), secretKey: Secret("other/secret="))
            )
            let error = try #require(throws: CommandFailure.self) {
                try AWSCredentials.read(file: path, environment: ["AWS_PROFILE": "missing"])
            }
            #expect(error.message.contains("'missing'") && error.exitCode == .configuration)
        }
    }

    @Test("are refused from a file that others may use", arguments: [0o644, 0o660, 0o602])
    func modes(mode: Int) async throws {
        try await OperatorFixture.with { fixture in
            try fixture.write(Self.text, to: "credentials", mode: mode)
            let error = try #require(throws: CommandFailure.self) {
                try AWSCredentials.read(file: fixture.path("credentials"), environment: [:])
            }
            #expect(error.message.contains("chmod 600") && error.exitCode == .configuration)
        }
    }

    @Test("are reported and not shown if they are missing or malformed")
    func missing() async throws {
        let none = try #require(throws: CommandFailure.self) { try AWSCredentials.read(file: nil, environment: [:]) }
        #expect(none.message.contains("AWS_SECRET_ACCESS_KEY") && none.message.contains("--aws-credentials-file"))
        let bad = ["AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "HIDDEN part"]
        let malformed = try #require(throws: CommandFailure.self) {
            try AWSCredentials.read(file: nil, environment: bad)
        }
        #expect(!malformed.message.contains("HIDDEN") && malformed.exitCode == .configuration)
        let absent = try #require(throws: CommandFailure.self) {
            try AWSCredentials.read(file: "/nowhere/credentials", environment: [:])
        }
        #expect(absent.exitCode == .inputUnreadable)
    }
}
