import Base

/// An item of an import's input.
struct ImportReading<Imported> {
    /// Where it was found, such as `line 5`.
    let place: String
    let result: Result<Imported, InputError>
}

extension Array {
    /// The content of the good ones of these items.
    func imported<Imported>() -> [Imported] where Element == ImportReading<Imported> {
        compactMap { item in
            if case .success(let imported) = item.result { imported } else { nil }
        }
    }
}
