import Base
import Crypto

/// The key that a refresh token in a spill file is bound to.
struct SpilledBindingKey {
    private static let name = "binding_key"

    /// `nil` for a token that is not bound.
    let id: KeyID?

    init(_ id: KeyID?) {
        self.id = id
    }

    /// Reads the members of a token. Returns `nil` if its key is no id: without its key the token would be sent without
    /// a proof.
    init?(in object: JSONValue) {
        guard let value = object[Self.name] else {
            id = nil
            return
        }
        guard let text = value.string, let key = KeyID(text) else { return nil }
        id = key
    }

    func write(into line: inout JSONLine) {
        guard let id else { return }
        line.field(Self.name, id.description)
    }
}
