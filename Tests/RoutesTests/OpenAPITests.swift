import Base
import Scheduler
import Storage
import Testing

@testable import HTTPServer
@testable import Routes

@Suite("docs/openapi.yaml")
struct OpenAPITests {
    private let description: OpenAPIDescription

    init() throws {
        description = try OpenAPIDescription()
    }

    @Test("describes exactly the routes of the public listener")
    func publicRoutes() throws {
        try expect(AccountFixture().routes.routes, tagged: "public")
    }

    @Test("describes exactly the routes of the internal listener")
    func internalRoutes() async throws {
        try expect(await VendingFixture().routes().routes, tagged: "internal")
    }

    @Test("describes only routes of a listener")
    func unlistedRoutes() {
        let unlistedRoutes = description.operations.filter { $0.tags.isDisjoint(with: ["public", "internal"]) }
        #expect(unlistedRoutes.map(\.name) == [])
    }

    private func expect(_ routes: [Route], tagged tag: String) throws {
        let served = Set(routes.map { "\($0.method) \($0.pattern)" })
        let described = Set(description.operations(tagged: tag).map(\.name))
        #expect(served.subtracting(described) == [], "served and not described")
        #expect(described.subtracting(served) == [], "described and not served")
    }

    // MARK: Statuses

    private static let authentication: [any Error] = [
        AuthenticationRefusal.missing, AuthenticationRefusal.invalid, AuthenticationRefusal.expired,
        AuthenticationRefusal.deleted, AuthenticationRefusal.inactive,
    ]
    private static let body: [any Error] = [
        RequestBodyError.unsupportedMediaType, RequestBodyError.unreadable, RequestBodyError.missing("name"),
        RequestBodyError.invalid("name", mustBe: "other"),
    ]
    private static let neededBody: [any Error] = body + [RequestBodyError.undeclared]
    private static let limited: [any Error] = [TooManyRequests(retryAfter: .seconds(1))]
    private static let refresh: [any Error] =
        neededBody + limited + [ComprehensionError.invalidRefreshToken, ComprehensionError.notMovedYet]
    private static let logout: [any Error] = authentication + body + limited
    private static let google: [any Error] = [
        IdentityFailure.refused, IdentityFailure.unavailable(code: "timeout"),
        VendingFailure.unavailable(reason: "timeout"),
        TooManyRequests(retryAfter: .seconds(1)),
    ]

    @Test("describes each status of the PayPulse routes")
    func payPulse() throws {
        let operations = description.operations(tagged: "paypulse")
        #expect(operations.count == 6)
        for operation in operations {
            let hasBody = operation.name.hasPrefix("POST ")
            let limited = operation.name.hasPrefix("DELETE ") ? Self.limited : []
            // A repeated deletion is not an error.
            let deletesUser = operation.name.hasPrefix("DELETE ") && operation.name.hasSuffix("/me")
            let authentication = Self.authentication.filter {
                !(deletesUser && $0 as? AuthenticationRefusal == .deleted)
            }
            let errors = authentication + (hasBody ? Self.neededBody + Self.google : limited)
            let statuses = errors.compactMap { PayPulseError($0)?.status }
            try #require(statuses.count == errors.count)
            expect(
                statuses + [PayPulseError.wrongMethod.status, PayPulseError.internalError.status],
                describedFor: operation
            )
        }
    }

    @Test("names each code of PayPulse's errors")
    func payPulseCodes() {
        let named = Set(description.lines.map { $0.drop { $0 == " " } })
        for code in PayPulseError.Code.allCases { #expect(named.contains("- \(code.rawValue)")) }
    }

    @Test(
        "describes each status of the ComprehensionEngine routes",
        arguments: [
            ("POST /api/auth/mobile/google", Self.neededBody + Self.google.filter { !($0 is VendingFailure) }),
            ("POST /api/auth/refresh", Self.refresh),
            ("GET /api/auth/me", Self.authentication),
            ("POST /api/auth/logout", Self.logout),
            ("GET /api/auth/status", []),
        ]
    )
    func comprehensionEngine(name: String, errors: [any Error]) throws {
        let operation = try #require(description.operations.first { $0.name == name })
        let statuses = errors.compactMap { ComprehensionError($0)?.status }
        try #require(statuses.count == errors.count)
        expect(
            statuses + [ComprehensionError.wrongMethod.status, ComprehensionError.internalError.status],
            describedFor: operation
        )
    }

    @Test("describes each status of token vending")
    func vending() {
        let refusals: [VendingError] = [
            .invalidRequest("why"), .unauthorized, .forbidden(.user), .missingScopes(["openid"]), .notFound,
            .mustAct(state: .disconnected, reason: .none, since: Timestamp(milliseconds: 0)),
            .unavailable(reason: "timeout", wait: .seconds(1)), .storeUnavailable, .auditUnavailable, .unreadable,
        ]
        let operations = description.operations(tagged: "vending")
        #expect(operations.count == 2)
        for operation in operations { expect([200, 405] + refusals.map(\.status), describedFor: operation) }
    }

    @Test("describes each status of the token endpoint")
    func tokenEndpoint() {
        let refusals: [VendingError] = [
            .invalidRequest("why"), .unsupportedGrantType, .invalidTarget, .unauthorized, .forbidden(.user),
            .missingScopes(["openid"]), .notFound, .unreadable, .auditUnavailable,
        ]
        let operations = description.operations(tagged: "oauth")
        #expect(operations.map(\.name) == ["POST \(TokenVendingHandler.tokenEndpointPath)"])
        let statuses = refusals.map { TokenEndpointError($0).response.status }
        for operation in operations {
            expect([200, TokenEndpointError.wrongMethod.response.status] + statuses, describedFor: operation)
        }
    }

    private func expect(_ statuses: [Int], describedFor operation: OpenAPIDescription.Operation) {
        #expect(Set(statuses).subtracting(operation.statuses) == [], "\(operation.name) lacks these")
    }
}
