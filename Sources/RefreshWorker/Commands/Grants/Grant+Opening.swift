import Crypto
import Storage

extension Grant {
    /// `true` if the key ring opens every token of the grant, or the grant has none.
    func opens(with vault: TokenVault) throws(CryptoError) -> Bool {
        do throws(CryptoError) {
            _ = try vault.openRefreshToken(of: self)
            _ = try vault.bindingKey(of: self)
            _ = try vault.openAccessToken(of: self)
            return true
        } catch {
            guard error.isOfOneValue else { throw error }
            return false
        }
    }
}
