import HTTPClient
import Worker

/// The failure of a call to AWS Secrets Manager.
///
/// It does not contain the service's own message: messages about a signature repeat the request's headers, including
/// the session token.
struct SecretsManagerFault: Error, Equatable, Sendable {
    enum Kind: Equatable, Sendable {
        /// The secret does not exist.
        case missing
        /// The secret is marked for deletion and cannot be read.
        case markedDeleted
        case denied
        case unknownKey
        case wrongSecretKey
        case expiredSession
        /// The time of the signature differs too much from the service's clock.
        case clock
        case undecryptable
        /// Too many requests, or a temporary fault of the service.
        case temporary
        case unreachable(HTTPFailure.Kind)
        /// The answer does not come from Secrets Manager.
        case unexpectedAnswer
        case other
    }

    let kind: Kind
    let operation: SecretsManagerClient.Operation
    /// The service's name for the fault, or the status.
    let code: String

    /// `true` if the same call may succeed soon without any change.
    var isTemporary: Bool {
        switch kind {
        case .temporary: true
        case .unreachable(let kind):
            switch kind {
            case .resolve, .connect, .tls, .timeout, .sendFailed, .receiveFailed, .other: true
            default: false
            }
        default: false
        }
    }

    /// Parses the answer of a failed call.
    init(status: Int, code: String?, message: String?, operation: SecretsManagerClient.Operation) {
        self.operation = operation
        self.code = code ?? "status \(status)"
        kind = Self.kind(status: status, code: code, message: message ?? "")
    }

    init(_ failure: HTTPFailure, operation: SecretsManagerClient.Operation) {
        self.operation = operation
        code = failure.description
        kind = .unreachable(failure.kind)
    }

    init(_ kind: Kind, code: String, operation: SecretsManagerClient.Operation) {
        self.kind = kind
        self.code = code
        self.operation = operation
    }

    /// Maps the service's names of errors to kinds.
    ///
    /// https://docs.aws.amazon.com/secretsmanager/latest/apireference/CommonErrors.html
    private static func kind(status: Int, code: String?, message: String) -> Kind {
        switch code {
        case "ResourceNotFoundException": return .missing
        case "InvalidRequestException" where message.contains("marked for deletion") || message.contains("deleted"):
            return .markedDeleted
        case "AccessDeniedException", "AccessDenied", "NotAuthorized": return .denied
        case "UnrecognizedClientException", "InvalidClientTokenId", "IncompleteSignature", "MissingAuthenticationToken",
            "MissingAuthenticationTokenException":
            return .unknownKey
        case "ExpiredTokenException", "ExpiredToken": return .expiredSession
        case "RequestExpired", "RequestTimeTooSkewed": return .clock
        case "InvalidSignatureException", "SignatureDoesNotMatch":
            return message.contains("expired") || message.contains("not yet current") ? .clock : .wrongSecretKey
        case "DecryptionFailure", "DecryptionFailureException": return .undecryptable
        case "ThrottlingException", "Throttling", "ThrottledException", "TooManyRequestsException",
            "RequestLimitExceeded", "InternalServiceError", "InternalServiceErrorException", "InternalFailure",
            "ServiceUnavailable":
            return .temporary
        default:
            if status == 429 || status >= 500 { return .temporary }
            return code == nil ? .unexpectedAnswer : .other
        }
    }
}

extension SecretsManagerFault {
    /// Returns the message for the person who started the import, and the exit code.
    func failure(for options: SecretsManagerOptions) -> CommandFailure {
        let service = "AWS Secrets Manager in \(options.region)"
        switch kind {
        case .missing, .markedDeleted:
            return CommandFailure(
                .configuration,
                """
                \(service) has no secret \(SecretsManagerOptions.clientIDName): give the client id with --client-id, or check \
                --region
                """
            )
        case .denied:
            return CommandFailure(
                .configuration,
                """
                \(service) refuses \(operation.rawValue) (\(code)): the credentials need the IAM permissions \
                secretsmanager:ListSecrets and secretsmanager:GetSecretValue, and kms:Decrypt if a key of your own \
                encrypts the secrets
                """
            )
        case .unknownKey:
            return CommandFailure(
                .configuration,
                """
                \(service) does not know these credentials (\(code)): check the access key id, and the session token that \
                temporary ones need
                """
            )
        case .wrongSecretKey:
            return CommandFailure(
                .configuration,
                "\(service) refuses the signature (\(code)): the secret access key does not belong to the access key id"
            )
        case .expiredSession:
            return CommandFailure(.configuration, "the AWS session token has expired (\(code)): get new credentials")
        case .clock:
            return CommandFailure(
                .configuration,
                "\(service) refuses the request's time (\(code)): this machine's clock is wrong by minutes; set it"
            )
        case .undecryptable:
            return CommandFailure(
                .configuration,
                "\(service) cannot decrypt a secret (\(code)): the credentials need kms:Decrypt for its key"
            )
        case .temporary:
            return CommandFailure(
                .leftForLater,
                "\(service) throttles requests or is failing (\(code)): try again later"
            )
        case .unreachable(let kind):
            let isPermanent = kind == .certificate || kind == .invalidURL
            return CommandFailure(
                isPermanent ? .configuration : .leftForLater,
                "\(service) cannot be reached (\(code)): check --region\(options.endpoint == nil ? "" : " and --aws-endpoint")"
            )
        case .unexpectedAnswer:
            return CommandFailure(
                .configuration,
                "the server that answers is not AWS Secrets Manager (\(code)): check --region and --aws-endpoint"
            )
        case .other:
            return CommandFailure(.inputUnreadable, "\(service) refuses \(operation.rawValue): \(code)")
        }
    }
}
