internal import HTTPServer

extension [ServerRequest.Field] {
    /// Throws if a field has another name: a misspelt filter would list every grant.
    ///
    /// The error does not repeat the name, which can be anything.
    func checkNames(_ names: [String]) throws(ServiceError) {
        guard !allSatisfy({ names.contains($0.name) }) else { return }
        let known = names.isEmpty ? "none" : names.joined(separator: ", ")
        throw .invalidRequest("the query or form has an unknown name. Known here: \(known)")
    }
}
