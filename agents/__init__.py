"""Who answers: the agents and how they are reached, the judge, and the models behind them."""
