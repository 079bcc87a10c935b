private import Crypto

/// The Cloud project that a client id belongs to: Google's ids begin with the project's number.
package enum ClientProject {
    /// `true` if two client ids belong to one project: they are equal, or begin with the same number and a dash.
    package static func same(_ first: String, _ second: String) -> Bool {
        if first == second { return true }
        guard let project = number(of: first) else { return false }
        return project == number(of: second)
    }

    private static func number(of clientID: String) -> Substring? {
        guard let dash = clientID.firstIndex(of: "-") else { return nil }
        let digits = clientID[..<dash]
        return digits.isDecimalNumber ? digits : nil
    }
}
