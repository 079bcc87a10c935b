import Base
import HTTPServer
import Scheduler
import Storage

/// The token endpoint for OAuth libraries: the tokens of ``TokenVendingHandler``, requested in a standard form.
extension TokenVendingHandler {
    static let tokenEndpointPath = "/oauth2/token"

    /// Returns a token that lives long enough for a library, or an error that it understands.
    func tokenEndpointResponse(to request: ServerRequest) async -> ServerResponse {
        let start = time.sinceBoot
        let form: TokenEndpointForm
        let login: ServiceLogin?
        do throws(VendingError) {
            form = try TokenEndpointForm(request)
            login = try ServiceLogin(request, form)
        } catch {
            return TokenEndpointError(refused(error, since: start)).response
        }
        guard let login, let service = services.service(named: login.name, presenting: login.credential) else {
            return TokenEndpointError(refusedStranger(request, since: start)).response
        }
        var grantType: TokenEndpointRequest.GrantType?
        let result = await vend(to: service, forced: false, since: start) { audit in
            let parsed = try TokenEndpointRequest(form, from: service)
            grantType = parsed.grantType
            do {
                return try await token(of: parsed.userID, parsed.demands, for: service, &audit)
            } catch {
                throw try await orDoubt(VendingError(error), about: parsed.userID)
            }
        }
        do throws(VendingError) {
            return TokenEndpointResponse.success(try result.get(), to: grantType, at: time.now)
        } catch {
            return TokenEndpointError(error).response
        }
    }

    /// Returns the error for now, instead of the end of a grant that the worker itself can still undo.
    ///
    /// Libraries delete the connection after `invalid_grant`, so it must be final.
    private func orDoubt(_ error: VendingError, about userID: String) async throws -> VendingError {
        guard case .mustAct(.disconnected, _, _) = error,
            let wait = try await provider.recallTimeLeft(ofUser: userID)
        else { return error }
        return .unavailable(reason: GrantReason.invalidGrantUnconfirmed.rawValue, wait: wait)
    }
}
