import Base
import Records

extension UserFieldMap {
    /// Parses the name of a known map, or `FIELD=NAME,…`.
    ///
    /// Without an argument, fields have their own names.
    init(reading argument: String?) throws(InputError) {
        if let known = [.unmapped, Self.payPulse, .comprehensionEngine].first(where: { $0.argument == argument }) {
            self = known
            return
        }
        guard let argument, argument.contains("=") else {
            throw InputError(
                "\(DisplayedText(argument ?? "")) is not a known map: use paypulse, comprehension-engine or FIELD=NAME,…"
            )
        }
        var names: [String: String] = [:]
        for pair in argument.split(separator: ",", omittingEmptySubsequences: false) {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, !parts[1].isEmpty else {
                throw InputError("\(DisplayedText(String(pair))) is not FIELD=NAME")
            }
            guard Self.fields.contains(parts[0]) else {
                let hint = parts[0].suggestion(among: Self.fields)
                throw InputError(
                    "\(DisplayedText(parts[0])) is not a field of a user\(hint); the fields are \(Self.fieldList)"
                )
            }
            guard names.updateValue(parts[1], forKey: parts[0]) == nil else {
                throw InputError("\(parts[0]) is given twice")
            }
        }
        self.init(argument: argument, names: names)
    }

    private static let fieldList = fields.joined(separator: ", ")
}
