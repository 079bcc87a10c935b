import Base
import Crypto
import Status
import Storage

/// A change of a grant that a button of the page stands for.
///
/// It is sealed with the operator's credential, so that no other site can make a form with it. The credential's hash
/// would not do: whoever can read the services file has that.
struct SealedChange {
    let operation: AdministrationHandler.Operation
    let grant: GrantID
    /// The grant's version that the operator saw.
    private let version: String

    /// Returns the texts of the buttons that make sense for a grant, for an operator who may manage it.
    static func all(
        of grant: Grant,
        for service: Service,
        presenting credential: Secret
    ) throws -> [StatusPage.Change: String] {
        guard service.isManager, grant.state != .disconnected else { return [:] }
        let key = key(of: service, presenting: credential)
        var buttons: [StatusPage.Change: String] = [:]
        for change in StatusPage.Change.allCases {
            if grant.state.endsRefreshes, change != .disconnect { continue }
            buttons[change] = Base64URL.encode(try key.seal("\(change.rawValue) \(grant.version)"))
        }
        return buttons
    }

    /// Opens a text of the page, or returns `nil` for any other text.
    init?(_ text: String, by service: Service, presenting credential: Secret) throws {
        guard service.isManager, let sealed = Base64URL.decode(text[...]) else { return nil }
        guard let opened = try Self.key(of: service, presenting: credential).open(sealed) else { return nil }
        let parts = opened.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, let operation = AdministrationHandler.Operation(rawValue: String(parts[0])),
            let grant = GrantID(String(parts[1].prefix { $0 != " " }))
        else { return nil }
        self.operation = operation
        self.grant = grant
        version = String(parts[1])
    }

    func check(_ stored: Grant?) throws {
        guard stored?.version == version else { throw ServiceError.oldPage }
    }

    /// No service has a name with a space, so that a handle is never a change.
    private static func key(of service: Service, presenting credential: Secret) -> TextSealingKey {
        TextSealingKey(from: credential, owner: "changes by \(service.name)")
    }
}
