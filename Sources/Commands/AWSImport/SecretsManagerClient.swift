import Base
import HTTPClient
import Scheduler

/// Lists and reads secrets, and retries temporary failures.
///
/// https://docs.aws.amazon.com/secretsmanager/latest/apireference/Welcome.html
struct SecretsManagerClient: Sendable {
    enum Operation: String, Sendable {
        case list = "ListSecrets"
        case read = "GetSecretValue"
    }

    /// A secret as a list shows it.
    struct ListedSecret: Equatable, Sendable {
        let name: String
        let isMarkedDeleted: Bool
    }

    struct Page: Equatable, Sendable {
        let secrets: [ListedSecret]
        /// The token for the request of the next page; `nil` after the last one.
        let nextToken: String?
    }

    /// The content of a secret.
    struct Value: Sendable {
        /// `nil` for a binary secret.
        let text: String?
        /// The time at which this version of the secret was stored.
        let storedAt: Timestamp?
    }

    /// The limit of an answer: enough for a page of a hundred secrets with all their tags and versions, or for the
    /// longest value.
    static let responseLimit = 4 << 20
    /// The number of tries of one call before the import ends; with the waits between them about two minutes.
    static let maximumTries = 9
    private static let pageSize = 100
    private static let latestInstant = 253_402_300_799.0

    let http: HTTPClient
    let endpoint: Endpoint
    let signature: AWSSignature
    let random: any RandomSource
    /// Waits between two tries.
    let pause: @Sendable (Duration) async throws -> Void

    private let backOff = BackOff(first: .seconds(1), longest: .seconds(30))

    init(
        http: HTTPClient,
        endpoint: Endpoint,
        region: String,
        credentials: AWSCredentials,
        random: any RandomSource,
        pause: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.http = http
        self.endpoint = endpoint
        signature = AWSSignature(region: region, service: "secretsmanager", credentials: credentials)
        self.random = random
        self.pause = pause
    }

    func page(prefix: String, after token: String?) async throws -> Page {
        var body = JSONLine()
        body.field("MaxResults", Self.pageSize)
        body.array("Filters") { filters in
            filters.object { filter in
                filter.field("Key", "name")
                filter.array("Values") { $0.element(prefix) }
            }
        }
        if let token { body.field("NextToken", token) }
        let answer = try await call(.list, body)
        guard let list = answer["SecretList"]?.array else { throw unexpected(.list, "no SecretList") }
        let secrets = list.compactMap { entry -> ListedSecret? in
            guard let name = entry["Name"]?.string else { return nil }
            return ListedSecret(name: name, isMarkedDeleted: (entry["DeletedDate"] ?? .null) != .null)
        }
        let next = answer["NextToken"]?.string.flatMap { $0.isEmpty ? nil : $0 }
        guard next == nil || next != token else { throw unexpected(.list, "the same page again") }
        return Page(secrets: secrets, nextToken: next)
    }

    func value(of name: String) async throws -> Value {
        var body = JSONLine()
        body.field("SecretId", name)
        let answer = try await call(.read, body)
        guard answer["Name"]?.string != nil else { throw unexpected(.read, "no Name") }
        return Value(text: answer["SecretString"]?.string, storedAt: Self.instant(answer["CreatedDate"]))
    }

    /// Parses seconds since 1970, the form of dates in Amazon's JSON protocols.
    private static func instant(_ value: JSONValue?) -> Timestamp? {
        guard case .number(let digits) = value, let seconds = Double(digits), (0...latestInstant).contains(seconds)
        else { return nil }
        return Timestamp(milliseconds: Int64((seconds * 1000).rounded()))
    }

    private func call(_ operation: Operation, _ body: JSONLine) async throws -> [String: JSONValue] {
        var failures = 0
        while true {
            do throws(SecretsManagerFault) {
                return try await attempt(operation, body)
            } catch {
                failures += 1
                guard error.isTemporary, failures < Self.maximumTries else { throw error }
                try await pause(backOff.delay(failures: failures, remainingLife: nil, unit: random.nextUnit()))
            }
        }
    }

    private func attempt(
        _ operation: Operation,
        _ body: JSONLine
    ) async throws(SecretsManagerFault) -> [String: JSONValue] {
        let request = HTTPRequest(
            method: .post,
            endpoint: endpoint,
            headers: [
                ("Content-Type", "application/x-amz-json-1.1"),
                ("X-Amz-Target", "secretsmanager.\(operation.rawValue)"),
            ],
            body: HTTPBody(body.bytes),
            signature: signature
        )
        let answer: HTTPResponse
        do throws(HTTPFailure) {
            answer = try await http.send(request)
        } catch {
            throw SecretsManagerFault(error, operation: operation)
        }
        let text = answer.body.reveal()
        let members = JSONValue.object(in: text)?.object
        guard answer.status == 200 else {
            throw SecretsManagerFault(
                status: answer.status,
                code: Self.code(in: members, header: answer.header("x-amzn-ErrorType"), text: text),
                message: members?["message"]?.string ?? members?["Message"]?.string,
                operation: operation
            )
        }
        guard let members else { throw unexpected(operation, "not JSON") }
        return members
    }

    /// Returns the name of the fault, without the namespace before it and the address after it
    /// (https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html#operation-error-serialization).
    private static func code(in members: [String: JSONValue]?, header: String?, text: [UInt8]) -> String? {
        guard let code = members?["__type"]?.string ?? header ?? codeOfXML(text) else { return nil }
        let name = code.prefix { $0 != ":" }.split(separator: "#").last ?? ""
        let isName = (1...64).contains(name.utf8.count) && name.allSatisfy { $0.isASCII && $0.isLetter }
        return isName ? String(name) : nil
    }

    /// Returns the code of an error in Amazon's older XML protocols, which some services use to refuse a signature.
    private static func codeOfXML(_ text: [UInt8]) -> String? {
        let text = String(decoding: text.prefix(4096), as: UTF8.self)
        guard let start = text.firstRange(of: "<Code>"),
            let end = text[start.upperBound...].firstRange(of: "</Code>")
        else { return nil }
        return String(text[start.upperBound..<end.lowerBound])
    }

    private func unexpected(_ operation: Operation, _ what: String) -> SecretsManagerFault {
        SecretsManagerFault(.unexpectedAnswer, code: what, operation: operation)
    }
}
