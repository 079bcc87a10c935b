import Base

/// The Cloud project of client ids.
package enum GoogleProject {
    /// `true` if both client ids belong to one Cloud project: they are equal, or begin with the project's number and a
    /// dash.
    package static func isShared(_ clientID: String, _ otherID: String) -> Bool {
        guard clientID != otherID else { return true }
        guard let project = number(ofClientID: clientID) else { return false }
        return project == number(ofClientID: otherID)
    }

    /// Returns the number of a client id's project, or `nil` if the id has another form than Google's.
    package static func number(ofClientID clientID: String) -> Substring? {
        guard let dash = clientID.firstIndex(of: "-") else { return nil }
        let number = clientID[..<dash]
        return number.isDecimalNumber ? number : nil
    }
}
