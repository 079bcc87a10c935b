import HTTPClient
import WorkerConfiguration

/// The failure of a call to AWS Secrets Manager.
///
/// It does not contain the service's own message: messages about a signature repeat the request's headers, including
/// the session token.
struct SecretsManagerFault: Error, Equatable, Sendable {
    enum Kind: Equatable, Sendable {
        /// The secret does not exist.
        case missing
        /// The secret is marked for deletion and can no longer be read.
        case markedDeleted
        case denied
        case unknownKey
        case wrongSecretKey
        case expiredSession
        /// The time of the signature differs too much from the service's clock.
        case clock
        case undecryptable
        /// Too many requests, or a temporary fault of the service.
        case passing
        case unreachable(HTTPFailure.Kind)
        /// The answer does not come from Secrets Manager.
        case foreign
        case other
    }

    let kind: Kind
    let operation: SecretsManagerClient.Operation
    /// The service's name for the fault, or the status.
    let code: String

    /// `true` if the same call may succeed soon without any change.
    var mayPass: Bool {
        switch kind {
        case .passing: true
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
            return .passing
        default:
            if status == 429 || status >= 500 { return .passing }
            return code == nil ? .foreign : .other
        }
    }
}

extension SecretsManagerFault {
    /// Returns the message for the person who started the import, and the exit code.
    func failure(for order: SecretsManagerOptions) -> CommandFailure {
        let place = "AWS Secrets Manager in \(order.region)"
        switch kind {
        case .missing, .markedDeleted:
            return CommandFailure(
                .configuration,
                """
                \(place) has no secret \(SecretsManagerOptions.clientIDName): give the client id with --client-id, or check \
                --region
                """
            )
        case .denied:
            return CommandFailure(
                .configuration,
                """
                \(place) refuses \(operation.rawValue) (\(code)): the credentials need the IAM permissions \
                secretsmanager:ListSecrets and secretsmanager:GetSecretValue, and kms:Decrypt if a key of your own \
                encrypts the secrets
                """
            )
        case .unknownKey:
            return CommandFailure(
                .configuration,
                """
                \(place) does not know these credentials (\(code)): check the access key id, and the session token that \
                temporary ones need
                """
            )
        case .wrongSecretKey:
            return CommandFailure(
                .configuration,
                "\(place) refuses the signature (\(code)): the secret access key does not belong to the access key id"
            )
        case .expiredSession:
            return CommandFailure(.configuration, "the AWS session token has expired (\(code)): get new credentials")
        case .clock:
            return CommandFailure(
                .configuration,
                "\(place) refuses the request's time (\(code)): this machine's clock is wrong by minutes; set it"
            )
        case .undecryptable:
            return CommandFailure(
                .configuration,
                "\(place) cannot decrypt a secret (\(code)): the credentials need kms:Decrypt for its key"
            )
        case .passing:
            return CommandFailure(.leftForLater, "\(place) throttles requests or is failing (\(code)): try again later")
        case .unreachable(let kind):
            let isForGood = kind == .certificate || kind == .invalidURL
            return CommandFailure(
                isForGood ? .configuration : .leftForLater,
                "\(place) cannot be reached (\(code)): check --region\(order.endpoint == nil ? "" : " and --aws-endpoint")"
            )
        case .foreign:
            return CommandFailure(
                .configuration,
                "the server that answers is not AWS Secrets Manager (\(code)): check --region and --aws-endpoint"
            )
        case .other:
            return CommandFailure(.inputUnreadable, "\(place) refuses \(operation.rawValue): \(code)")
        }
    }
}
