import Base
import Crypto
import HTTPServer
private import Synchronization

/// The current services by credential.
///
/// Credentials are long and random, so a plain hash protects them against guessing. They are found by that hash, which
/// a caller cannot choose, so the time of a look-up does not reveal existing ones. With HTTP Basic a service is found
/// by its name, which is not secret.
package final class ServiceDirectory: Sendable {
    private let list: Mutex<ServiceList>

    package init(_ services: ServiceList) {
        list = Mutex(services)
    }

    /// Replaces the services, for example after a reload.
    package func replace(_ services: ServiceList) {
        list.withLock { $0 = services }
    }

    func service(presenting credential: some StringProtocol) -> Service? {
        let hash = Digest.sha256(Array(credential.utf8))
        return list.withLock { $0.services[hash] }
    }

    func user(ofHandle handle: String) throws(CryptoError) -> NamedUser? {
        for service in list.withLock({ $0.services }).values {
            if let user = try service.user(ofHandle: handle) { return user }
        }
        return nil
    }

    /// Returns the service with this name if the credential is its own.
    func service(named name: String, presenting credential: String) -> Service? {
        let hash = Digest.sha256(Array(credential.utf8))
        guard let service = list.withLock({ $0.service(named: name) }) else { return nil }
        return ConstantTime.areEqual(service.credentialHash, hash) ? service : nil
    }

    /// Returns the service that a request authenticates: by its credential alone, or with its name by HTTP Basic, as a
    /// browser does.
    func service(authenticating request: ServerRequest) -> Service? {
        guard let credential = request.serviceCredential?.reveal() else { return nil }
        guard case .present(let name, _) = BasicCredentials(of: request) else {
            return service(presenting: credential)
        }
        return service(named: name, presenting: credential)
    }
}

extension ServerRequest {
    /// The credential that a request presents: a bearer token, or the password of HTTP Basic.
    var serviceCredential: Secret? {
        if let token = BearerToken(of: self).text { return Secret(token) }
        guard case .present(_, let password) = BasicCredentials(of: self) else { return nil }
        return Secret(password)
    }
}
