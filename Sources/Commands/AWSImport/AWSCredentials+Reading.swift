import Crypto
import HTTPClient
import Worker

extension AWSCredentials {
    /// The names that Amazon's own programs use; environment variables have them in upper case
    /// (https://docs.aws.amazon.com/cli/latest/userguide/cli-configure-envvars.html).
    private enum Name {
        static let keyID = "aws_access_key_id"
        static let secretKey = "aws_secret_access_key"
        static let sessionToken = "aws_session_token"
        static let profile = "AWS_PROFILE"
    }

    /// Reads the credentials from the file if one is named, otherwise from the environment.
    static func read(file path: String?, environment: [String: String]) throws(CommandFailure) -> AWSCredentials {
        guard let path else {
            var values: [String: Secret] = [:]
            for name in [Name.keyID, Name.secretKey, Name.sessionToken] {
                values[name] = environment[name.uppercased()].map { Secret($0) }
            }
            return try credentials(
                from: values,
                missing: """
                    AWS credentials are missing: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN \
                    with temporary ones), or name a file of them with --aws-credentials-file
                    """,
                source: "the environment"
            )
        }
        let profile = environment[Name.profile].flatMap { $0.isEmpty ? nil : $0 } ?? "default"
        let source = "\(DisplayedText(path))"
        let flag = "--aws-credentials-file"
        let file = try CommandContext.readPrivate(path, for: flag, unreadable: .inputUnreadable)
        return try credentials(
            from: values(in: file.reveal(), profile: profile),
            missing: """
                --aws-credentials-file: \(source) has no \(Name.keyID) and \(Name.secretKey) for the profile \
                \(DisplayedText(profile)); name another with \(Name.profile)
                """,
            source: source
        )
    }

    private static func credentials(
        from values: [String: Secret],
        missing: String,
        source: String
    ) throws(CommandFailure) -> AWSCredentials {
        let present = values.filter { !$0.value.isEmpty }
        guard let keyID = present[Name.keyID], let secretKey = present[Name.secretKey] else {
            throw CommandFailure(.configuration, missing)
        }
        let credentials = AWSCredentials(keyID: keyID, secretKey: secretKey, sessionToken: present[Name.sessionToken])
        guard credentials.isWellFormed else {
            throw CommandFailure(
                .configuration,
                "the AWS credentials in \(source) contain blanks or other characters that AWS credentials never contain"
            )
        }
        return credentials
    }

    /// Returns the values of one profile: `[name]` begins it, `key = value` belongs to it, `#` and `;` begin comments
    /// (https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html).
    private static func values(in text: String, profile: String) -> [String: Secret] {
        var values: [String: Secret] = [:]
        var isInProfile = false
        for rawLine in text.split(whereSeparator: \.isNewline) {
            let line = rawLine.trimmingBlanks()
            if line.hasPrefix("["), line.hasSuffix("]") {
                isInProfile = line.dropFirst().dropLast().trimmingBlanks() == profile
            } else if isInProfile, let equalsSign = line.firstIndex(of: "="), !line.hasPrefix("#"), !line.hasPrefix(";")
            {
                let name = line[..<equalsSign].trimmingBlanks().lowercased()
                values[name] = Secret(utf8: line[line.index(after: equalsSign)...].trimmingBlanks().utf8)
            }
        }
        return values
    }
}
